// A file whose bytes differ from those that were written, or cannot be read back from the disk.
// Another copy of it may be intact.
#pragma once

#include "base/error.h"

namespace snug::base {

class DamagedFile : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace snug::base
