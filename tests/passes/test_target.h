// A target that runs what a test says; no workspace unless it says one.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "program/work/target.h"

namespace snug::passes {

class TestTarget : public program::Target {
 public:
  using Runs = std::function<bool(const program::OperationView&)>;
  explicit TestTarget(Runs runs) : runs_(std::move(runs)) {}
  std::string name() const override { return "test"; }
  std::string library_versions() const override { return "none"; }
  int64_t capacity_bytes(program::Space) const override { return 1 << 30; }
  int64_t alignment_bytes() const override { return 64; }
  bool runs(const program::OperationView& view) const override { return runs_(view); }
  program::Workspace workspace(const program::OperationView&) const override { return scratch; }
  program::Attributes decide(const program::OperationView& view) const override {
    return decided ? *decided : view.operation.attributes;
  }

  program::Workspace scratch;                  // of every operation
  std::optional<program::Attributes> decided;  // of every operation

 private:
  Runs runs_;
};

}  // namespace snug::passes
