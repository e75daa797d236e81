// Weights stored as NF4: random codes and scales, double quantised or not.
#include "operation_case.h"
#include "program/kinds/product/nf4.h"
#include "stored_weight_case.h"

namespace snug::backends::test {
namespace {

using program::DType;
using program::TensorId;

struct Size {
  int64_t rows, out, in;
};

// Of the last, the rows do not fit into the shared memory of most cards next to the kernel's table.
// The weights before it end within a block, and within a byte. A single output could be a sum that
// cancels, of which no error is small: there are several in each.
constexpr Size kSizes[]{{1, 16, 64},    {1, 7, 128},    {3, 130, 192}, {4, 33, 640},  {1, 300, 256},
                        {4, 24, 4160},  {4, 20, 8320},  {6, 9, 4160},  {9, 5, 64},    {16, 70, 320},
                        {17, 32, 1152}, {32, 33, 4160}, {33, 16, 128}, {2, 3, 50},    {1, 5, 77},
                        {5, 11, 192},   {7, 70, 1216},  {12, 17, 448}, {3, 20, 10240}};

void add_cases(CaseList& list) {
  for (const Size& size : kSizes)
    for (const bool nested : {false, true}) {
      const std::string name =
          fmt::format("{} x {} x {}{}", size.rows, size.out, size.in, nested ? " nested" : "");
      CaseBuilder values = list.builder();
      const auto stored = stored_weight(values, size.out * size.in, nested);
      const auto w = values.output_activation({size.out, size.in});
      list.add(values.finish(name, program::DequantizeNf4{nested}, stored, {w}));
      for (const bool addend : {false, true}) {
        CaseBuilder product = list.builder();
        std::vector<TensorId> reads{product.activation({size.rows, size.in})};
        for (const TensorId id : stored_weight(product, size.out * size.in, nested))
          reads.push_back(id);
        if (addend) reads.push_back(product.activation({size.rows, size.out}));
        const auto y = product.output_activation({size.rows, size.out});
        list.add(product.finish(name + (addend ? " addend" : ""),
                                program::MatmulNf4{nested, addend}, reads, {y}));
      }
    }
}

}  // namespace

CaseTable nf4_cases() {
  using program::Kind;
  return {{Kind::dequantize_nf4, Kind::matmul_nf4}, add_cases};
}

}  // namespace snug::backends::test
