#include "program/tensor_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/last_part.h"

namespace snug::program {

std::string own_name(ProgramName program, std::string_view name) {
  return fmt::format("{}.{}", name_of(program), name);
}

std::string stream_name(base::TokenStream stream, std::string_view name) {
  if (stream == base::TokenStream::decoder) return std::string(name);
  return fmt::format("{}.{}", base::word_of(stream), name);
}

base::TokenStream stream_of(std::string_view tensor) {
  // Before the last part there may be a program's name too.
  const std::string_view before = tensor.substr(0, std::min(tensor.size(), tensor.rfind('.')));
  const bool is_encoder = base::last_part(before) == base::word_of(base::TokenStream::encoder);
  return is_encoder ? base::TokenStream::encoder : base::TokenStream::decoder;
}

std::string host_name(std::string_view tensor) { return fmt::format("host.{}", tensor); }

std::string gradient_name(std::string_view trainable) {
  return fmt::format("gradient.{}", trainable);
}
std::string master_name(std::string_view trainable) { return fmt::format("master.{}", trainable); }
std::string first_moment_name(std::string_view trainable) {
  return fmt::format("moment1.{}", trainable);
}
std::string second_moment_name(std::string_view trainable) {
  return fmt::format("moment2.{}", trainable);
}
std::string row_moment_name(std::string_view trainable) {
  return fmt::format("moment_rows.{}", trainable);
}
std::string column_moment_name(std::string_view trainable) {
  return fmt::format("moment_columns.{}", trainable);
}
std::string first_scale_name(std::string_view trainable) {
  return fmt::format("scale1.{}", trainable);
}
std::string second_scale_name(std::string_view trainable) {
  return fmt::format("scale2.{}", trainable);
}
std::string gradient_norm_name(std::string_view trainable) {
  return fmt::format("{}.{}", kGradientNormName, trainable);
}
std::string clip_factor_name(std::string_view trainable) {
  return fmt::format("{}.{}", kClipFactorName, trainable);
}

std::string workspace_name(size_t operation) { return fmt::format("workspace.{}", operation); }

std::string original_name(std::string_view tensor) {
  constexpr std::string_view kMasterPrefix = "master.";
  return std::string(tensor.starts_with(kMasterPrefix) ? tensor.substr(kMasterPrefix.size())
                                                       : tensor);
}

std::string staging_slot_name(int slot) { return fmt::format("staging.slot.{}", slot); }
std::string staging_stage_name(int slot) { return fmt::format("staging.stage.{}", slot); }
std::string staging_absmax_name(int slot) { return fmt::format("staging.absmax.{}", slot); }
std::string staging_values_name(int slot) { return fmt::format("staging.values.{}", slot); }
std::string staging_scales_name(int slot) { return fmt::format("staging.scales.{}", slot); }

}  // namespace snug::program
