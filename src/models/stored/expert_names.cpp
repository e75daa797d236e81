#include "models/stored/expert_names.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

#include "base/error.h"

namespace snug::models {
namespace {

// The first stands for the number of an expert, the second separates linears stored in one tensor.
constexpr std::string_view kEachExpert = ".*.";
constexpr char kNextLinear = '+';
// Before the number of the last head.
constexpr std::string_view kEachHead = ".0..";

std::string stacked_name(const std::string& module, const std::string& linears) {
  return weight_name(fmt::format("{}{}{}", module, kEachExpert, linears));
}

// Splits "gate_proj+up_proj" into "gate_proj" and "up_proj".
std::vector<std::string_view> split_linears(std::string_view linears) {
  std::vector<std::string_view> names;
  for (size_t end = linears.find(kNextLinear); end != std::string_view::npos;
       end = linears.find(kNextLinear)) {
    names.push_back(linears.substr(0, end));
    linears.remove_prefix(end + 1);
  }
  names.push_back(linears);
  return names;
}

bool are_together(const ExpertsBlock& experts) { return experts.files == ExpertFiles::together; }
bool are_apart(const ExpertsBlock& experts) { return experts.files == ExpertFiles::each; }

// (experts, out, in), or (experts, in, out) where files store the transpose.
program::Shape matrix_shape(const ExpertsBlock& experts, int64_t out, int64_t in) {
  return are_together(experts) ? program::Shape{experts.experts, in, out}
                               : program::Shape{experts.experts, out, in};
}

std::string bias_of(const ExpertsBlock& experts, const std::string& linear) {
  SNUG_CHECK(are_together(experts), "biases of experts in tensors of their own, {}",
             experts.module);
  return fmt::format("{}.{}_bias", experts.module, linear);
}

// The parts of "norms.0..31.weight": "norms.0.weight" to "norms.31.weight".
std::vector<FilePiece> pieces_of_heads(std::string_view name, int64_t elements) {
  const size_t at = name.find(kEachHead);
  const std::string_view rest = name.substr(at + kEachHead.size());
  int64_t last = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), last);
  SNUG_CHECK(error == std::errc{} && elements % (last + 1) == 0, "{} has {} elements", name,
             elements);
  const int64_t width = elements / (last + 1);
  std::vector<FilePiece> pieces;
  pieces.reserve(static_cast<size_t>(last + 1));
  for (int64_t head = 0; head <= last; ++head)
    pieces.push_back({fmt::format("{}.{}{}", name.substr(0, at), head,
                                  std::string_view(end, rest.data() + rest.size())),
                      {width},
                      head * width});
  return pieces;
}

}  // namespace

std::string weight_of_heads(const std::string& module, int64_t heads) {
  return weight_name(fmt::format("{}{}{}", module, kEachHead, heads - 1));
}

std::string gate_up_name(const ExpertsBlock& experts) {
  if (!are_apart(experts)) return fmt::format("{}.{}", experts.module, experts.gate);
  return stacked_name(experts.module, fmt::format("{}{}{}", experts.gate, kNextLinear, experts.up));
}

program::Shape gate_up_shape(const ExpertsBlock& experts) {
  return matrix_shape(experts, 2 * experts.inner, experts.router.in);
}

std::string down_name(const ExpertsBlock& experts) {
  if (!are_apart(experts)) return fmt::format("{}.{}", experts.module, experts.down);
  return stacked_name(experts.module, experts.down);
}

program::Shape down_shape(const ExpertsBlock& experts) {
  return matrix_shape(experts, experts.router.in, experts.inner);
}

std::string gate_up_bias_name(const ExpertsBlock& experts) {
  return bias_of(experts, experts.gate);
}

program::Shape gate_up_bias_shape(const ExpertsBlock& experts) {
  return {experts.experts, 2 * experts.inner};
}

std::string down_bias_name(const ExpertsBlock& experts) { return bias_of(experts, experts.down); }

program::Shape down_bias_shape(const ExpertsBlock& experts) {
  return {experts.experts, experts.router.in};
}

bool is_stacked(std::string_view name) { return name.find(kEachExpert) != std::string_view::npos; }

std::vector<FilePiece> file_pieces(std::string_view name, const program::Shape& shape) {
  if (name.find(kEachHead) != std::string_view::npos)
    return pieces_of_heads(name, shape.elements());
  const size_t at = name.find(kEachExpert);
  if (at == std::string_view::npos) return {{std::string(name), shape, 0}};
  SNUG_CHECK_EQ(shape.rank(), 3);
  const std::string_view module = name.substr(0, at);
  const std::string_view rest = name.substr(at + kEachExpert.size());
  const size_t dot = rest.find('.');
  SNUG_CHECK(dot != std::string_view::npos, "{} names no tensor of a linear", name);
  const auto linears = split_linears(rest.substr(0, dot));
  const program::Shape matrix{shape[1] / std::ssize(linears), shape[2]};
  std::vector<FilePiece> pieces;
  int64_t first = 0;
  for (int64_t expert = 0; expert < shape[0]; ++expert)
    for (const std::string_view linear : linears) {
      pieces.push_back(
          {fmt::format("{}.{}.{}{}", module, expert, linear, rest.substr(dot)), matrix, first});
      first += matrix.elements();
    }
  SNUG_CHECK_EQ(first, shape.elements());
  return pieces;
}

}  // namespace snug::models
