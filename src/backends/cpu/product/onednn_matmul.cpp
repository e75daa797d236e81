#include "backends/cpu/product/onednn_matmul.h"

#include <omp.h>

#include <oneapi/dnnl/dnnl_version.h>
#include <algorithm>
#include <array>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>
#include <vector>

#include "base/available_memory.h"
#include "base/error.h"

namespace snug::backends::cpu {

using Memory = dnnl::memory;

class MatmulPrimitive {
 public:
  explicit MatmulPrimitive(const MatmulSpec& spec);
  const dnnl::matmul::primitive_desc& description() const { return description_; }
  void create();
  void execute(const MatmulOperands& operands, std::byte* scratch);

 private:
  dnnl::matmul::primitive_desc description_;
  dnnl::matmul primitive_;  // empty until created
  // The arguments in oneDNN's terms, without memory of their own; handles are set in each run.
  Memory a_, b_, c_, addend_, scratch_;
  int addend_argument_ = 0;  // 0 if there is no addend
};

namespace {

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& cpu_stream() {
  thread_local dnnl::stream stream(cpu_engine());
  return stream;
}

Memory::desc matrix(int64_t rows, int64_t columns, base::DType type, const int64_t (&strides)[2]) {
  SNUG_CHECK(type == base::DType::f32 || type == base::DType::bf16, "oneDNN was given {}",
             base::name_of(type));
  return Memory::desc(Memory::dims{rows, columns},
                      type == base::DType::bf16 ? Memory::data_type::bf16 : Memory::data_type::f32,
                      Memory::dims{strides[0], strides[1]});
}

Memory::desc destination(const MatmulSpec& spec) {
  return matrix(spec.m, spec.n, spec.c_type, {spec.c_stride, 1});
}

Memory::desc addend(const MatmulSpec& spec) {
  return matrix(spec.m, spec.n, spec.addend_type, {spec.addend_stride, 1});
}

// alpha * product + addend. Version 2 can scale the product itself. Version 3 has no such scale for
// floats, and its kernels want the sum first: there the sum adds c / alpha, and then a linear step
// multiplies both by alpha.
dnnl::primitive_attr attributes(const MatmulSpec& spec) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops ops;
#if DNNL_VERSION_MAJOR >= 3
  if (spec.add == MatmulSpec::Add::destination) ops.append_sum(1.0F / spec.alpha);
  if (spec.alpha != 1.0F) ops.append_eltwise(dnnl::algorithm::eltwise_linear, spec.alpha, 0.0F);
#else
  if (spec.alpha != 1.0F) attr.set_output_scales(0, {spec.alpha});
  if (spec.add == MatmulSpec::Add::destination) ops.append_sum(1.0F);
#endif
  if (spec.add == MatmulSpec::Add::addend)
    ops.append_binary(dnnl::algorithm::binary_add, addend(spec));
  attr.set_post_ops(ops);
  return attr;
}

dnnl::matmul::primitive_desc describe(const MatmulSpec& spec) {
  const Memory::desc a = matrix(spec.m, spec.k, spec.a_type, spec.a_strides);
  const Memory::desc b = matrix(spec.k, spec.n, spec.b_type, spec.b_strides);
  const Memory::desc c = destination(spec);
#if DNNL_VERSION_MAJOR >= 3
  return {cpu_engine(), a, b, c, attributes(spec)};
#else
  return {dnnl::matmul::desc(a, b, c), attributes(spec), cpu_engine()};
#endif
}

Memory unbound(const Memory::desc& description) {
  return Memory(description, cpu_engine(), DNNL_MEMORY_NONE);
}

struct CachedPrimitive {
  MatmulSpec spec;
  int threads;
  std::unique_ptr<MatmulPrimitive> primitive;
};

}  // namespace

MatmulPrimitive::MatmulPrimitive(const MatmulSpec& spec)
    : description_(describe(spec)),
      a_(unbound(description_.src_desc())),
      b_(unbound(description_.weights_desc())),
      c_(unbound(description_.dst_desc())),
      scratch_(unbound(description_.scratchpad_desc())) {
  if (spec.add != MatmulSpec::Add::addend) return;
  addend_ = unbound(addend(spec));
  const int position = attributes(spec).get_post_ops().len() - 1;
  addend_argument_ = DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1;
}

// oneDNN writes a product's kernels to memory without checking that it was allocated, so it is
// checked here; they take less than a mebibyte each.
void MatmulPrimitive::create() {
  constexpr size_t kKernelBytes = size_t{16} << 20;
  if (primitive_) return;
  base::require_address_space(kKernelBytes);
  primitive_ = dnnl::matmul(description_);
}

// The C interface takes its arguments from the stack; the C++ interface would copy a map to the
// heap.
void MatmulPrimitive::execute(const MatmulOperands& operands, std::byte* scratch) {
  SNUG_CHECK(primitive_, "a product ran before its primitive was created");
  a_.set_data_handle(const_cast<std::byte*>(operands.a));
  b_.set_data_handle(const_cast<std::byte*>(operands.b));
  c_.set_data_handle(operands.c);
  scratch_.set_data_handle(scratch);
  std::array<dnnl_exec_arg_t, 5> arguments{{{DNNL_ARG_SRC, a_.get()},
                                            {DNNL_ARG_WEIGHTS, b_.get()},
                                            {DNNL_ARG_DST, c_.get()},
                                            {DNNL_ARG_SCRATCHPAD, scratch_.get()},
                                            {}}};
  int count = 4;
  if (addend_argument_ != 0) {
    addend_.set_data_handle(const_cast<std::byte*>(operands.addend));
    arguments[4] = {addend_argument_, addend_.get()};
    count = 5;
  }
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive_.get(), cpu_stream().get(), count, arguments.data());
  SNUG_CHECK(status == dnnl_success, "oneDNN's matmul failed with status {}",
             static_cast<int>(status));
}

// A job has a few dozen shapes, and searching a list is faster than hashing a key.
MatmulPrimitive& matmul_primitive(const MatmulSpec& spec) {
  thread_local std::vector<CachedPrimitive> cache;
  const int threads = omp_get_max_threads();
  for (const CachedPrimitive& cached : cache)
    if (cached.threads == threads && cached.spec == spec) return *cached.primitive;
  try {
    cache.push_back({spec, threads, std::make_unique<MatmulPrimitive>(spec)});
  } catch (const dnnl::error& error) {
    SNUG_CHECK(false, "oneDNN {} has no product ({} x {}) ({} x {}) {} {} -> {}: {}",
               onednn_version(), spec.m, spec.k, spec.k, spec.n, base::name_of(spec.a_type),
               base::name_of(spec.b_type), base::name_of(spec.c_type), error.what());
  }
  return *cache.back().primitive;
}

int64_t scratch_bytes(const MatmulPrimitive& primitive) {
  return static_cast<int64_t>(primitive.description().scratchpad_desc().get_size());
}

std::string implementation(const MatmulPrimitive& primitive) {
  return primitive.description().impl_info_str();
}

void create(MatmulPrimitive& primitive) { primitive.create(); }

void execute(MatmulPrimitive& primitive, const MatmulOperands& operands, std::byte* scratch) {
  primitive.execute(operands, scratch);
}

void limit_onednn(Isa isa) {
  constexpr std::array kLimits{dnnl::cpu_isa::sse41, dnnl::cpu_isa::avx2,
                               dnnl::cpu_isa::avx512_core, dnnl::cpu_isa::avx512_core_bf16,
                               dnnl::cpu_isa::avx512_core_amx};
  const Isa limit = reports_tile_palette() ? isa : onednn_isa(isa);
  static_cast<void>(
      dnnl_set_max_cpu_isa(static_cast<dnnl_cpu_isa_t>(kLimits[static_cast<size_t>(limit)])));
  // Once the level was queried, oneDNN refuses later changes: it is fixed for the process.
  static_cast<void>(dnnl_get_effective_cpu_isa());
}

// A level is a set of bits that includes those of all lower levels.
bool onednn_has_tiles() {
  constexpr auto kTiles = static_cast<unsigned>(dnnl_cpu_isa_avx512_core_amx);
  return (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) & kTiles) == kTiles;
}

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

}  // namespace snug::backends::cpu
