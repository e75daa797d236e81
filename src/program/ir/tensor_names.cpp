#include "program/ir/tensor_names.h"

#include <fmt/format.h>

namespace snug::program {

std::string own_name(const ProgramKey& program, std::string_view name) {
  return fmt::format("{}.{}", name_of(program), name);
}

std::string stream_name(base::TokenStream stream, std::string_view name) {
  if (stream == base::TokenStream::decoder) return std::string(name);
  return fmt::format("{}.{}", base::word_of(stream), name);
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
std::string average_name(std::string_view trainable) {
  return fmt::format("average.{}", trainable);
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
