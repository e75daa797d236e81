// What this backend does with every kind. A kind's file in this folder defines functions by the
// names below, in an anonymous namespace, and states at its end which ones; CpuBackend calls them.
//
//   SNUG_CPU_KIND(SiluMul, .supports = supports);
//
// Every kind has run, which the macro puts in. What a kind leaves out is null.
#pragma once

#include <cstdint>
#include <memory>

#include "backends/cpu/context.h"
#include "backends/invocation.h"
#include "program/ir/program.h"

namespace snug::backends::cpu {

template <typename Struct>
struct KindFunctions {
  using View = program::OperationView;

  // One thread calls it; it may use all. It allocates nothing: scratch is invocation.workspace,
  // whose size is what workspace_bytes said for the same shapes, at 64-byte alignment.
  void (*run)(const Struct&, const Invocation&, CpuContext&);
  // Whether the element types of an operation can run here. Null: f32 and bf16 in any mix.
  bool (*supports)(const Struct&, const View&, const CpuContext&) = nullptr;
  // The attributes with this backend's decisions. Null: as they are.
  Struct (*decide)(const Struct&, const View&, const CpuContext&) = nullptr;
  // Scratch of an operation. Null: none.
  int64_t (*workspace_bytes)(const Struct&, const View&, const CpuContext&) = nullptr;
  // Whether the library was asked for its size, or for a part of it. Null: no; own kernels alone
  // lay it out.
  bool (*asks_library)(const Struct&) = nullptr;
  // What is kept of an operation between runs. Null: nothing.
  std::unique_ptr<Prepared> (*prepare)(const Struct&, const View&, CpuContext&) = nullptr;
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

#define SNUG_CPU_KIND(Struct, ...)                                              \
  template <>                                                                   \
  const KindFunctions<program::Struct> FunctionsOf<program::Struct>::kDefined { \
    .run = run __VA_OPT__(, ) __VA_ARGS__                                       \
  }

}  // namespace snug::backends::cpu
