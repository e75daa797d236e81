// Checks of a communicator that each of its ranks calls: results bit for bit, and the bytes sent.
#pragma once

#include "comm/communicator.h"

namespace snug::comm {

void check_all_gather(Communicator& communicator, bool in_place);
// Every combination of types, with and without `add`, sizes that are odd, empty or padded.
void check_reduce_scatter(Communicator& communicator);
void check_reduce_scatter_in_place(Communicator& communicator);
void check_all_reduce(Communicator& communicator);
// 400 small tensors of different sizes in one call.
void check_many_parts(Communicator& communicator);
// In several pieces, which are noted.
void check_long_parts(Communicator& communicator);
// Several that are begun before the first is waited for.
void check_queue(Communicator& communicator);
void check_texts(Communicator& communicator);
void check_split(Communicator& communicator);
void check_all(Communicator& communicator);

}  // namespace snug::comm
