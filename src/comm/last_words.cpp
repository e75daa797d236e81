#include "comm/last_words.h"

#include "comm/host_communicator.h"

namespace snug::comm {

bool is_to_say(Communicator& ranks, const Ending& ending) {
  auto* host = dynamic_cast<HostCommunicator*>(&ranks);
  SNUG_CHECK(host != nullptr, "{} has no last words", ranks.name());
  return host->is_to_say(ending);
}

}  // namespace snug::comm
