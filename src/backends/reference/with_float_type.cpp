#include "backends/reference/with_float_type.h"

#include "base/error.h"

namespace snug::backends::reference {

program::Program with_float_type(program::Program program, program::DType type) {
  SNUG_CHECK(base::is_float(type), "{} is no float type", base::name_of(type));
  for (program::Tensor& tensor : program.tensors)
    if (base::is_float(tensor.dtype) && tensor.role != program::Role::workspace)
      tensor.dtype = type;
  return program;
}

}  // namespace snug::backends::reference
