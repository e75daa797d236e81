#include "runtime/session.h"

#include "base/error.h"
#include "runtime/loading/random_weights.h"

namespace snug::runtime {

void Session::open(const plan::Job& job) {
  SNUG_CHECK(executor_ == nullptr, "a job is open already");
  executor_ = std::make_unique<Executor>(job, *backend_, mesh_);
}

Executor& Session::executor() const {
  SNUG_CHECK(executor_ != nullptr, "no job is open");
  return *executor_;
}

std::optional<LoadReport> Session::load_weights(const models::ModelSource& model,
                                                formats::Init init) {
  if (init == formats::Init::random) {
    random_weights(model.config, executor());
    return std::nullopt;
  }
  return runtime::load_weights(model.folder, model.config, executor());
}

}  // namespace snug::runtime
