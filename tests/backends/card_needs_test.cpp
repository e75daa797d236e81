// What every card of the table runs, whatever shared memory its blocks may have.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "backends/cuda/device/hardware_table.h"
#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/kind_needs.h"
#include "backends/cuda/product/few_rows_needs.h"
#include "backends/cuda/product/kernels/few_rows_ring.h"
#include "program/kinds/attention/attention.h"
#include "program/text/text.h"

namespace snug::backends::cuda {
namespace {

using program::parse_text;
using program::Program;

Program attention_of(int head_dim, const char* type) {
  return parse_text(fmt::format(
      "program attention\ntensor q (512, {0}) {2}\ntensor k (512, {1}) {2}\n"
      "tensor v (512, {1}) {2}\ntensor do (512, {0}) {2}\ntensor b (2, 2) i32\n"
      "o (512, {0}) {2}, lse (4, 512) f32 = attention(q, k, v, b, b) "
      "{{heads 4, kv_heads 2, head_dim {3}, causal}}\n"
      "dq (512, {0}) {2}, dk (512, {1}) {2}, dv (512, {1}) {2} = "
      "attention_grad(do, q, k, v, o, lse, b, b) {{heads 4, kv_heads 2, head_dim {3}, causal}}",
      4 * head_dim, 2 * head_dim, type, head_dim));
}

// Gemma's heads are of 256.
TEST(EveryCard, attends_with_heads_of_every_width) {
  for (const HardwareRow& row : hardware_table())
    for (const int head_dim : {5, 64, 80, 128, 136, 160, 192, 256})
      for (const char* type : {"bf16", "f32"}) {
        const Program program = attention_of(head_dim, type);
        for (const program::Operation& operation : program.operations)
          EXPECT_TRUE(runs({program, operation}, card_of(row)))
              << row.name << ", heads of " << head_dim << " in " << type;
      }
}

// All widths that are whole vectors of 16 bytes, up to those of Gemma's heads.
TEST(EveryCard, attends_on_its_tensor_cores_with_heads_of_whole_vectors) {
  for (const HardwareRow& row : hardware_table()) {
    Card card = card_of(row);
    card.cudnn = false;
    for (int head_dim = 8; head_dim <= kMaxMatrixDims; head_dim += 8) {
      const Program program = attention_of(head_dim, "bf16");
      const auto decided = [&](size_t operation) {
        return decide({program, program.operations[operation]}, card);
      };
      using program::AttentionBy;
      EXPECT_EQ(decided(0).get<program::Attention>().kernel.by, AttentionBy::tensor_cores)
          << row.name << ", heads of " << head_dim;
      EXPECT_EQ(decided(1).get<program::AttentionGrad>().kernel.by, AttentionBy::tensor_cores)
          << row.name << ", heads of " << head_dim;
    }
  }
}

// Next to the table of codes a block of 99 KiB keeps less of x; where it keeps none, it reads x.
TEST(FewRows, are_kept_where_the_card_has_room) {
  EXPECT_TRUE(keeps_few_rows(3, 10240, false, 99 << 10));
  EXPECT_FALSE(keeps_few_rows(3, 10240, true, 99 << 10));
  EXPECT_TRUE(keeps_few_rows(3, 10240, true, 163 << 10));
  EXPECT_FALSE(keeps_few_rows(4, 10240, false, 227 << 10));
  for (const HardwareRow& row : hardware_table())
    for (int64_t rows = 1; rows <= kMostFewRows; ++rows)
      for (int64_t columns = 64; columns <= 65536; columns += 64)
        for (const bool has_codes : {false, true}) {
          const Card card = card_of(row);
          const FewRowsBlock block = few_rows_block(rows, columns, has_codes, card);
          const int64_t bytes = block.dynamic_bytes + kFewRowsDeclaredBytes;
          ASSERT_LE(bytes, card.shared_bytes) << row.name;
          ASSERT_TRUE(!block.is_deep || card.blocks_at_a_time(bytes) >= 2) << row.name;
          // Where a norm shares the launch, every card must keep its rows.
          ASSERT_TRUE(block.keeps_x ||
                      !keeps_few_rows_by_ring(rows, columns, has_codes, kLeastSharedBytes))
              << row.name;
        }
}

// Llama 3.1 8B's widest products: the next kernel's block has room next to a deep ring.
TEST(FewRows, have_deep_rings_where_much_is_read) {
  for (const char* name : {"h100", "h200", "b200"})
    for (const int64_t columns : {4096, 14336})
      for (const bool has_codes : {false, true}) {
        const FewRowsBlock block =
            few_rows_block(1, columns, has_codes, card_of(*find_hardware(name)));
        EXPECT_TRUE(block.is_deep && block.keeps_x) << name << ", " << columns << ", " << has_codes;
      }
}

// A norm shares the launch of its products where blocks of every card keep its rows.
TEST(FewRows, share_a_norms_launch_where_every_card_has_room) {
  const auto together = [](int columns, const std::string& product) {
    const Program program = parse_text(
        fmt::format("program norm\ntensor x (3, {0}) bf16\ntensor n ({0}) bf16\n"
                    "tensor w (128, {0}) bf16\ntensor c ({1}, 1) u8\ntensor a ({2}) f32\n"
                    "y (3, {0}) bf16 = rms_norm(x, n) {{epsilon 1e-05}}\n"
                    "z (3, 128) bf16 = {3}",
                    columns, 64 * columns, 2 * columns, product));
    return few_rows_together(program, 0);
  };
  const std::string plain = "matmul(y, w) {transpose_b, algorithm few_rows_tensor_cores}";
  const std::string codes = "matmul_nf4(y, c, a) {algorithm few_rows_tensor_cores}";
  EXPECT_EQ(together(4096, plain), 2U);
  EXPECT_EQ(together(4096, codes), 2U);
  EXPECT_EQ(together(10240, plain), 2U);
  EXPECT_EQ(together(10240, codes), 1U);
}

}  // namespace
}  // namespace snug::backends::cuda
