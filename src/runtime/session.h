// A job that is open: the backend, and once the job is planned for it the executor that holds the
// job's arenas. What trains, evaluates and generates runs programs of one session: a job may have
// the programs of several stages (program/ir/program_name.h), which take turns in its bytes.
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
  // `mesh`: the ranks that the backend was given, whose communicators outlive the session; null:
  // one rank alone.
  explicit Session(std::unique_ptr<backends::Backend> backend, const comm::Mesh* mesh = nullptr)
      : backend_(std::move(backend)), mesh_(mesh) {}

  backends::Backend& backend() const { return *backend_; }

  // Allocates what the job takes, as Executor's constructor says; once. The job, which was planned
  // for this backend, must outlive the session.
  void open(const plan::Job& job);
  // Requires that a job was opened.
  Executor& executor() const;

 private:
  std::unique_ptr<backends::Backend> backend_;
  const comm::Mesh* mesh_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace snug::runtime
