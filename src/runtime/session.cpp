#include "runtime/session.h"

#include "base/error.h"

namespace snug::runtime {

void Session::open(const plan::Job& job) {
  SNUG_CHECK(executor_ == nullptr, "a job is open already");
  executor_ = std::make_unique<Executor>(job, *backend_, mesh_);
}

Executor& Session::executor() const {
  SNUG_CHECK(executor_ != nullptr, "no job is open");
  return *executor_;
}

}  // namespace snug::runtime
