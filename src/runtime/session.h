// An open job: the backend and, once the job is planned for it, the executor that holds the job's
// arenas. Training, evaluation and generation run programs of one session: a job may have the
// programs of several stages (program/ir/program_name.h), which take turns in the same bytes.
//
// One thread drives it.
#pragma once

#include <memory>

#include "backends/backend.h"
#include "comm/mesh.h"
#include "plan/job/job.h"
#include "runtime/execution/executor.h"

namespace snug::runtime {

class Session {
 public:
  // `mesh` has the ranks that the backend was given, whose communicators must outlive the session;
  // null for a single rank.
  explicit Session(std::unique_ptr<backends::Backend> backend, const comm::Mesh* mesh = nullptr)
      : backend_(std::move(backend)), mesh_(mesh) {}

  backends::Backend& backend() const { return *backend_; }

  // Allocates what the job needs, as Executor's constructor describes; call it once. The job must
  // be planned for this backend and must outlive the session.
  void open(const plan::Job& job);
  // Requires that a job is open.
  Executor& executor() const;

 private:
  std::unique_ptr<backends::Backend> backend_;
  const comm::Mesh* mesh_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace snug::runtime
