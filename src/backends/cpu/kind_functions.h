// The functions of this backend for every kind of operation. A kind's file in this folder defines
// some of the functions below in an anonymous namespace, and lists at its end which ones;
// CpuBackend calls them.
//
//   SNUG_CPU_KIND(SiluMul, .supports = supports);
//
// Every kind must have `run`, which the macro adds. Functions that a kind does not list are null.
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

  // Called by one thread; it may use all threads. It allocates nothing: scratch is
  // invocation.workspace, with the size that workspace_bytes gave for the same shapes, aligned to
  // 64 bytes.
  void (*run)(const Struct&, const Invocation&, CpuContext&);
  // Whether an operation with these element types can run here. Null: f32 and bf16 in any mix.
  bool (*supports)(const Struct&, const View&, const CpuContext&) = nullptr;
  // The attributes with this backend's decisions filled in. Null: unchanged.
  Struct (*decide)(const Struct&, const View&, const CpuContext&) = nullptr;
  // The size of an operation's scratch. Null: none.
  int64_t (*workspace_bytes)(const Struct&, const View&, const CpuContext&) = nullptr;
  // Whether a library determined the scratch size or a part of it. Null: no, only Snug's own
  // kernels use it.
  bool (*asks_library)(const Struct&) = nullptr;
  // What is kept for an operation between runs. Null: nothing.
  std::unique_ptr<Prepared> (*prepare)(const Struct&, const View&, CpuContext&) = nullptr;
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

#define SNUG_CPU_KIND(Struct, ...)                                              \
  template <>                                                                   \
  const KindFunctions<program::Struct> FunctionsOf<program::Struct>::kDefined { \
    .run = run __VA_OPT__(, ) __VA_ARGS__                                       \
  }

}  // namespace snug::backends::cpu
