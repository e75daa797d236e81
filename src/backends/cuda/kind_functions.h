// What this backend does with every kind. A kind's file in this folder defines functions by the
// names below, in an anonymous namespace, and states at its end which ones; CudaBackend calls them.
//
//   SNUG_CUDA_KIND(Matmul, .prepare = prepare, .tune = tune);
//
// Every kind has run, which the macro puts in. What a kind leaves out is null. What an
// operation needs of a card is said in needs/kind_needs.h, which asks for no toolkit.
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

  // Queues the operation on the context's stream and returns; looks at no value on the device.
  // Scratch is invocation.workspace, whose size is what needs/kind_needs.h says of the same shapes.
  void (*run)(const Struct&, const Invocation&, CudaContext&);
  // Whether what run queues follows Invocation::extent(): then it is queued in every run. Of others
  // that name extents, kernels read the bounds on the device, and launches are for all that shapes
  // allow.
  bool takes_extent = false;
  // Whether run queues kernels, own ones or a library's, which are loaded before the first step by
  // calling it (kernel_loading.h).
  bool has_kernels = true;
  // Runs operations that were joined, two or more, the first of which has these attributes. Null:
  // none are.
  void (*run_together)(const Struct&, List, CudaContext&) = nullptr;
  // What is kept of an operation between runs. What else runs take of the device is made here too,
  // so that none of them finds that it is not to be had. Null: nothing.
  std::unique_ptr<Prepared> (*prepare)(const Struct&, const View&, CudaContext&) = nullptr;
  // Chooses between ways to do it by timing them on its tensors, before anything is loaded
  // (Backend::tune), and lets libraries load what they need for it. Null: there is one way, which
  // calls no library.
  void (*tune)(const Struct&, const Invocation&, CudaContext&) = nullptr;
};

// The functions of a kind, stated in its file.
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
