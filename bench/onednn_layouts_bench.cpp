// What oneDNN alone makes of bf16 products whose right factor lies as linears keep it (rows of
// outputs, "as stored"), turned, and in the layout that oneDNN itself prefers ("packed"): what
// packing frozen weights once could bring. Shapes are rows, inner and outer widths of models
// between 135M and 1.2B parameters.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <dnnl.hpp>
#include <string>

namespace {

using dnnl::memory;
using Tag = memory::format_tag;

struct Layout {
  const char* name;
  Tag tag;
};
constexpr Layout kLayouts[] = {{"as_stored", Tag::ba}, {"turned", Tag::ab}, {"packed", Tag::any}};
constexpr int64_t kShapes[][3] = {{512, 2048, 8192},  {512, 8192, 2048},  {512, 2048, 2048},
                                  {1024, 1024, 3072}, {1024, 3072, 1024}, {2048, 576, 1536},
                                  {2048, 1536, 576},  {2048, 2048, 5632}};

void fill(const memory& tensor) {
  auto* values = static_cast<uint16_t*>(tensor.get_data_handle());
  for (size_t i = 0; i < tensor.get_desc().get_size() / 2; ++i)
    values[i] = static_cast<uint16_t>(0x3f80U + i % 7);
}

void multiply(benchmark::State& state, const int64_t (&shape)[3], Tag layout) {
  const auto [rows, inner, outer] = shape;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto type = memory::data_type::bf16;
  const memory::desc a({rows, inner}, type, Tag::ab);
  const memory::desc b({inner, outer}, type, layout);
  const memory::desc c({rows, outer}, type, Tag::ab);
  const dnnl::matmul::primitive_desc described(dnnl::matmul::desc(a, b, c), engine);
  const dnnl::matmul product(described);
  const memory left(a, engine);
  const memory right(described.weights_desc(), engine);
  const memory result(c, engine);
  fill(left);
  fill(right);
  const auto run = [&] {
    product.execute(stream,
                    {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_DST, result}});
    stream.wait();
  };
  run();
  for (auto _ : state) run();
  state.counters["GFLOP/s"] = benchmark::Counter(2e-9 * static_cast<double>(rows * inner * outer),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace

int main(int argc, char** argv) {
  for (const auto& shape : kShapes)
    for (const Layout& layout : kLayouts) {
      std::string name = layout.name;
      for (const int64_t length : shape) name += "/" + std::to_string(length);
      benchmark::RegisterBenchmark(name.c_str(), [&shape, &layout](benchmark::State& state) {
        multiply(state, shape, layout.tag);
      })->UseRealTime();
    }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
