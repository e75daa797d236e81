// What of a tensor that is sharded or padded (program::Tensor::whole) a rank has: which of its
// memory holds elements of the tensor, which is padding, and which of them it writes to files.
#pragma once

#include <cstdint>

#include "backends/invocation.h"
#include "comm/mesh.h"
#include "plan/job/job.h"
#include "program/ir/tensor.h"

namespace snug::runtime {

// `elements` elements of a contiguous buffer from its element `begin` on, flat; `first` goes on.
backends::Buffer slice(const backends::Buffer& buffer, int64_t begin, int64_t elements);

// The elements of the tensor that lie in its buffer on this rank, flat, `first` the place of the
// first of them in the whole. A tensor that is not sharded is its buffer.
backends::Buffer held_part(const program::Tensor& tensor, const backends::Buffer& buffer);
// What is left of the buffer.
backends::Buffer padding(const program::Tensor& tensor, const backends::Buffer& buffer);

// What of it this rank writes where the ranks of a replica write a tensor together: its part of
// what is sharded or padded; all of another tensor on the first of them, and nothing on others.
backends::Buffer written_part(const program::Tensor& tensor, const backends::Buffer& buffer,
                              const comm::Mesh& mesh);

// Sets a buffer of a tensor of the job to the number 0 as the tensor is coded: a first moment of 8
// bits has another code for it than 0. Gives the buffer's bytes.
int64_t set_zero(const plan::Job& job, const program::Tensor& tensor,
                 const backends::Buffer& buffer, backends::Backend& backend);

}  // namespace snug::runtime
