// The part of a sharded or padded tensor (program::Tensor::whole) that a rank has: which of its
// memory holds elements, which is padding, and which elements it writes to files.
#pragma once

#include <cstdint>

#include "backends/invocation.h"
#include "comm/mesh.h"
#include "plan/job/job.h"
#include "program/ir/tensor.h"

namespace snug::runtime {

// A flat range of a contiguous buffer: `elements` elements from its element `begin` on; `first` is
// advanced accordingly.
backends::Buffer slice(const backends::Buffer& buffer, int64_t begin, int64_t elements);

// The tensor's elements in its buffer on this rank, flat; `first` is the index of the first of them
// in the whole tensor. For a tensor that is not sharded it is the whole buffer.
backends::Buffer held_part(const program::Tensor& tensor, const backends::Buffer& buffer);
// The rest of the buffer, which is padding.
backends::Buffer padding(const program::Tensor& tensor, const backends::Buffer& buffer);

// The elements that this rank writes where the ranks of a replica write a tensor together: its part
// of a sharded or padded tensor; of any other tensor everything on the first rank, and nothing on
// the others.
backends::Buffer written_part(const program::Tensor& tensor, const backends::Buffer& buffer,
                              const comm::Mesh& mesh);

// Sets a buffer of a job's tensor to the code for the number 0: an 8-bit first moment encodes it by
// another byte than 0. Returns the size of the buffer in bytes.
int64_t set_zero(const plan::Job& job, const program::Tensor& tensor,
                 const backends::Buffer& buffer, backends::Backend& backend);

}  // namespace snug::runtime
