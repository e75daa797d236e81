// The names of rate keys, as calibration files have them: every part that a name is made of, where
// it stands in it, and the names that are looked up in its place. Samples are found by them, so
// that a name which changes leaves files that are there unread.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "program/text/text.h"
#include "program/work/rate_key.h"

namespace snug::program {
namespace {

RateKey key_of(const std::string& text) {
  const Program program = parse_text("program names\n" + text);
  return rate_key({program, program.operations.at(0)}, {});
}

std::string name_of(const std::string& text) { return key_of(text).form.name(); }

// y = x w, of what stands between the braces.
std::string product(const std::string& attributes) {
  return "tensor x (64, 32) bf16\ntensor w (32, 16) bf16\ny (64, 16) bf16 = matmul(x, w) {" +
         attributes + "}";
}

// The same, and a product of low rank that is added.
std::string two_products(const std::string& attributes) {
  return "tensor x (64, 32) bf16\ntensor w (32, 16) bf16\ntensor h (64, 8) bf16\n"
         "tensor b (8, 16) bf16\ny (64, 16) bf16 = matmul(x, w, h, b) {augmented, " +
         attributes + "}";
}

std::string grouped(const std::string& attributes) {
  return "tensor a (64, 32) f32\ntensor b (4, 32, 16) f32\ntensor bounds (4, 2) i32\n"
         "c (64, 16) f32 = grouped_matmul(a, b, bounds) {" +
         attributes + "}";
}

std::string grouped_grad(const std::string& attributes) {
  return "tensor a (64, 32) f32\ntensor b (64, 16) f32\ntensor bounds (4, 2) i32\n"
         "c (4, 32, 16) f32 = grouped_matmul_grad(a, b, bounds) {" +
         attributes + "}";
}

std::string attention(const std::string& q_rows, const std::string& more) {
  return "tensor q (" + q_rows +
         ", 12) bf16\ntensor k (64, 6) bf16\ntensor v (64, 6) bf16\ntensor b (4, 2) i32\n"
         "o (" +
         q_rows + ", 12) bf16, lse (4, " + q_rows +
         ") f32 = attention(q, k, v, b, b) {heads 4, kv_heads 2, head_dim 3, causal" + more + "}";
}

std::string attention_grad(const std::string& more) {
  return "tensor q (64, 12) f16\ntensor k (64, 6) f16\ntensor v (64, 6) f16\n"
         "tensor do (64, 12) f16\ntensor o (64, 12) f16\ntensor lse (4, 64) f32\n"
         "tensor b (4, 2) i32\ndq (64, 12) f16, dk (64, 6) f16, dv (64, 6) f16 = "
         "attention_grad(do, q, k, v, o, lse, b, b) {heads 4, kv_heads 2, head_dim 3, causal" +
         more + "}";
}

std::string loss(const std::string& attributes) {
  return "tensor h (100, 8) bf16\ntensor w (50, 8) bf16\ntensor t (100) i32\ntensor i (1) f32\n"
         "l (100) f32, s (1) f32, dh (100, 8) bf16, dw (50, 8) f32 = "
         "linear_cross_entropy_train(h, w, t, i) {weight_gradient, " +
         attributes + "}";
}

std::string adamw(const std::string& after) {
  return "tensor g (8) f32\ntensor f (1) f32\ntensor r (1) f32\ntensor s (1) i32\n"
         "tensor w (8) bf16\ntensor m (8) f32\ntensor v (8) f32\n"
         "adamw(g, f, r, s) updates (w, m, v) " +
         after;
}

std::string gather(const std::string& role, const std::string& more) {
  return "tensor all (1000) f32 " + role + "\nall_gather() updates (all) {ranks 8, " + more +
         "in_place} channel interconnect";
}

using Cases = std::vector<std::pair<std::string, std::string>>;  // text, name

void expect_named(const Cases& cases) {
  for (const auto& [text, name] : cases) EXPECT_EQ(name_of(text), name) << text;
}

TEST(RateNames, OfProducts) {
  expect_named({
      {product(""), "matmul n n bf16 bf16 > bf16"},
      {product("algorithm library"), "matmul n n bf16 bf16 > bf16"},
      {product("algorithm timed"), "matmul n n bf16 bf16 > bf16"},
      {product("algorithm thin"), "matmul n n bf16 bf16 > bf16 by thin"},
      {product("algorithm few_rows_tensor_cores"),
       "matmul n n bf16 bf16 > bf16 by few_rows_tensor_cores"},
      {product("algorithm blocked, dense b"), "matmul n n bf16 bf16 > bf16 by blocked copied"},
      {product("algorithm library rest_algorithm wide, dense a"),
       "matmul n n bf16 bf16 > bf16 copied rest by wide"},
      {"tensor dy (100, 70) bf16\ntensor x (100, 30) bf16\ntensor dw (70, 30) bf16\n"
       "matmul(dy, x) updates (dw) {transpose_a, accumulate, stochastic, algorithm wide, dense c}",
       "matmul t n bf16 bf16 += bf16 stochastic by wide copied"},
      {two_products("products 2 low_algorithm timed, algorithm library"),
       "matmul n n bf16 bf16 bf16 bf16 > bf16 products 2"},
      {two_products("products 2 low_algorithm library, algorithm thin, dense a"),
       "matmul n n bf16 bf16 bf16 bf16 > bf16 by thin copied products 2 low by library"},
      {grouped("transpose_b, algorithm library"), "matmul n t f32 f32 > f32"},
      {grouped("algorithm blocked rest_algorithm few_rows, dense a"),
       "matmul n n f32 f32 > f32 by blocked copied rest by few_rows"},
      {grouped_grad("algorithm thin rest_algorithm library"),
       "matmul t n f32 f32 > f32 by thin rest by library"},
      {"tensor x (4, 64) bf16\ntensor codes (1024) u8\ntensor absmax (32) f32\n"
       "y (4, 32) bf16 = matmul_nf4(x, codes, absmax) {algorithm few_rows}",
       "matmul_nf4 bf16 f32 > bf16 by few_rows"},
  });
}

// Of keys and values in 8 bits, and their scales.
std::string quantized_attention(const std::string& more) {
  return "tensor q (4, 12) bf16\ntensor k (64, 6) u8\ntensor v (64, 6) u8\ntensor b (4, 2) i32\n"
         "tensor s (2, 64) f32\no (4, 12) bf16, lse (4, 4) f32 = attention(q, k, v, b, b, s, s) "
         "{heads 4, kv_heads 2, head_dim 3, causal, quantized" +
         more + "}";
}

TEST(RateNames, OfAttention) {
  const std::string own = "attention bf16 bf16 bf16 > bf16 f32";
  const std::string grad = "attention_grad f16 f16 f16 f16 f16 f32 > f16 f16 f16";
  expect_named({
      {attention("64", ""), own},
      {attention("64", ", kernel library"), own + " by library"},
      {attention("64", ", kernel tensor_cores, softcap 50"), own + " on tensor cores adjusted"},
      {attention("64", ", kernel few_queries 64, alibi_scale 1"), own + " adjusted few"},
      {attention("4", ", kernel tensor_cores splits 2"), own + " cached on tensor cores"},
      {attention("4", ", kernel library, softcap 50"), own + " cached by library adjusted"},
      {quantized_attention(""), own + " cached quantized"},
      {quantized_attention(", softcap 50"), own + " cached adjusted quantized"},
      {attention_grad(""), grad},
      {attention_grad(", kernel tensor_cores few_keys 64, softcap 50, dense q"),
       grad + " on tensor cores adjusted copied few"},
  });
}

TEST(RateNames, OfLosses) {
  const std::string typed = "linear_cross_entropy_train bf16 bf16 f32 > f32 f32 bf16 f32";
  expect_named({
      {loss("algorithm halved_chunks chunk_rows 64"), typed},
      {loss("algorithm online chunk_rows 64, products logits_algorithm wide"), typed + " online"},
      {loss("algorithm online chunk_rows 64, products logits_algorithm wide dweight_algorithm "
            "library"),
       typed + " online dweight by library"},
      {loss("algorithm halved_chunks chunk_rows 64, products logits_algorithm wide "
            "dhidden_algorithm wide "
            "dweight_algorithm library"),
       typed + " by wide dweight by library"},
      {loss("algorithm halved_chunks chunk_rows 64, products rest_logits_algorithm blocked"),
       typed + " rest logits by blocked"},
  });
}

TEST(RateNames, OfWhatMovesBytes) {
  expect_named({
      {"tensor x (8) f32\ny (8) bf16 = cast(x)", "cast f32 > bf16"},
      {"tensor x (8) i32\ny (8) i32 pinned_host = copy(x)", "copy"},
      {"tensor a (50) bf16\ntensor b (50) bf16\nn (1) f32 = global_norm(a, b)", "global_norm bf16"},
      {"tensor w (8, 4) bf16\ntensor a (2, 4) bf16\ntensor b (8, 2) bf16\n"
       "n (8) f32 = row_norms(w, a, b) {low_rank}",
       "row_norms bf16 bf16 bf16 > f32"},
      {adamw(""), "adamw f32 f32 f32 += bf16 f32 f32"},
      {adamw("joined"), "adamw f32 f32 f32 += bf16 f32 f32"},
      {adamw("channel host on_host"), "adamw f32 f32 f32 += bf16 f32 f32 on host"},
      {"tensor slot (4096) u8 staging\na (8) f32 weight run = read() updates (slot) {file_width 4} "
       "channel storage",
       "storage read"},
      {gather("", ""), "all_gather 8 ranks"},
      {gather("", "nodes 2, "), "all_gather 8 ranks on 2 nodes"},
      {gather("staging pinned_host", ""), "all_gather 8 ranks between hosts"},
      {gather("staging pinned_host", "nodes 2, "), "all_gather 8 ranks on 2 nodes between hosts"},
      {"tensor x (1000) f32\nall_reduce() updates (x) {ranks 2} channel interconnect",
       "all_reduce 2 ranks"},
  });
}

// What is measured alike has one name, and nothing else has.
TEST(RateNames, HaveEachPartOfTheForm) {
  const RateForm bare{.kind = "matmul", .reads = {base::DType::f16}};
  std::vector<RateForm> forms(8, bare);
  forms[0].kind = "add";
  forms[1].transposes = {true, false};
  forms[2].reads.clear();
  forms[3].writes = {base::DType::f16};
  forms[4].updates = {base::DType::f16};
  forms[5].ranks = 2;
  forms[6].nodes = 2;
  forms[7].algorithm = ProductAlgorithm::wide;
  for (bool RateForm::*flag :
       {&RateForm::between_hosts, &RateForm::stochastic, &RateForm::cached, &RateForm::by_library,
        &RateForm::tensor_cores, &RateForm::online, &RateForm::adjusted, &RateForm::quantized,
        &RateForm::copied, &RateForm::few, &RateForm::on_host}) {
    forms.push_back(bare);
    forms.back().*flag = true;
  }
  forms.push_back(bare);
  forms.back().decisions = {"products 2"};
  std::set<std::string> names{bare.name()};
  for (const RateForm& form : forms) {
    EXPECT_NE(form, bare) << form.name();
    EXPECT_TRUE(names.insert(form.name()).second) << form.name();
  }
}

TEST(RateNames, ThatAreLookedUpInItsPlace) {
  const RateForm two =
      key_of(two_products("products 2 low_algorithm library, algorithm thin, dense a")).form;
  const std::string product = "matmul n n bf16 bf16 bf16 bf16 > bf16 by thin";
  EXPECT_EQ(without_decisions(two).name(), product + " copied");
  EXPECT_EQ(plain(two).name(), product);
  const RateForm grad =
      key_of(attention_grad(", kernel tensor_cores few_keys 64, softcap 50, dense q")).form;
  EXPECT_EQ(plain(grad).name(),
            "attention_grad f16 f16 f16 f16 f16 f32 > f16 f16 f16 on tensor cores few");
  EXPECT_EQ(with_bf16_for_f16(plain(grad)).name(),
            "attention_grad bf16 bf16 bf16 bf16 bf16 f32 > bf16 bf16 bf16 on tensor cores few");
  const RateForm staged = key_of(gather("staging pinned_host", "nodes 2, ")).form;
  EXPECT_EQ(between_devices(staged).name(), "all_gather 8 ranks on 2 nodes");
}

}  // namespace
}  // namespace snug::program
