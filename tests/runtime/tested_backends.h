// The backends that a test binary has, as types that tests of what backends do are instantiated
// with and derive from.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#ifdef SNUG_TEST_CPU_BACKEND
#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#else
#include "backends/cuda/cuda_backend.h"
#include "device_record.h"
#endif

namespace snug::testing {

#ifdef SNUG_TEST_CPU_BACKEND

class OnCpu : public backends::cpu::CpuBackend {
 public:
  explicit OnCpu(const comm::Mesh* mesh = nullptr) : CpuBackend({.threads = 1, .mesh = mesh}) {}
  // Whether its device keeps a record of what it was given (recorded), and whether it also runs
  // what it would not decide itself.
  static constexpr bool kHasRecord = false;
  static constexpr bool kObeysOthers = true;
};

class OnReference : public backends::reference::ReferenceBackend {
 public:
  explicit OnReference(const comm::Mesh* mesh = nullptr) : ReferenceBackend({.mesh = mesh}) {}
  static constexpr bool kHasRecord = false;
  static constexpr bool kObeysOthers = false;
};

using TestedBackends = ::testing::Types<OnCpu, OnReference>;

template <typename F>
std::vector<std::string> recorded(const F& f) {
  f();
  return {};
}

#else

class OnCard : public backends::cuda::CudaBackend {
 public:
  OnCard()
      : CudaBackend({.chooses_by_timing = false,
                     .make_host = [] { return backends::open_backend("cpu", {.threads = 1}); }}) {}
  static constexpr bool kHasRecord = true;
  static constexpr bool kObeysOthers = true;
};

using TestedBackends = ::testing::Types<OnCard>;

// What the emulated device was given while f ran, which waits for it.
template <typename F>
std::vector<std::string> recorded(const F& f) {
  std::vector<std::string> record;
  cuda_emulator::device_record = &record;
  f();
  cuda_emulator::device_record = nullptr;
  return record;
}

#endif

}  // namespace snug::testing
