// The functions of this backend for every kind of operation. A kind's file in this folder defines
// some of the functions below in an anonymous namespace, and lists at its end which ones;
// CudaBackend calls them.
//
//   SNUG_CUDA_KIND(Matmul, .prepare = prepare, .tune = tune);
//
// Every kind must have `run`, which the macro adds. Functions that a kind does not list are null.
// What an operation needs of a GPU is in needs/kind_needs.h, which does not depend on the toolkit.
#pragma once

#include <memory>
#include <span>

#include "backends/cuda/device/context.h"
#include "backends/invocation.h"
#include "base/error.h"
#include "program/ir/program.h"

namespace snug::backends::cuda {

template <typename Struct>
struct KindFunctions {
  using View = program::OperationView;
  using List = std::span<const Invocation>;

  // Queues the operation on the context's stream and returns; does not read values on the device.
  // Scratch is invocation.workspace, with the size that needs/kind_needs.h gives for the same
  // shapes.
  void (*run)(const Struct&, const Invocation&, CudaContext&);
  // Whether `run` queues work according to Invocation::extent(); such an operation is queued in
  // every run. For other kinds with extents, kernels read the bounds on the device, and launches
  // cover all that the shapes allow.
  bool takes_extent = false;
  // Whether `run` launches kernels, Snug's own or a library's. They are loaded before the first
  // step by calling `run` (kernel_loading.h).
  bool has_kernels = true;
  // Runs two or more joined operations, the first of which has these attributes. Null: this kind is
  // never joined.
  void (*run_together)(const Struct&, List, CudaContext&) = nullptr;
  // What is kept for an operation between runs. Everything else that runs need of the device is
  // created here too, so that none can fail later for lack of it. Null: nothing.
  std::unique_ptr<Prepared> (*prepare)(const Struct&, const View&, CudaContext&) = nullptr;
  // Chooses between algorithms by timing them on the operation's tensors, before anything is loaded
  // (Backend::tune), and lets libraries load what they need for it. Null: there is only one
  // algorithm, which calls no library.
  void (*tune)(const Struct&, const Invocation&, CudaContext&) = nullptr;
};

// The functions of a kind, defined in its file.
template <typename Struct>
struct FunctionsOf {
  static const KindFunctions<Struct> kDefined;
};

#define SNUG_KIND(Struct, name) \
  template <>                   \
  const KindFunctions<program::Struct> FunctionsOf<program::Struct>::kDefined;
SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND

#define SNUG_CUDA_KIND(Struct, ...)                                             \
  template <>                                                                   \
  const KindFunctions<program::Struct> FunctionsOf<program::Struct>::kDefined { \
    .run = run __VA_OPT__(, ) __VA_ARGS__                                       \
  }

}  // namespace snug::backends::cuda
