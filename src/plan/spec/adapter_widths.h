// The element widths of an adapter's tensors in its files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace snug::plan {

struct AdapterWidths {
  // The bytes per element of tensors that are not in 32 bits, by their PEFT names in the file. PEFT
  // itself writes 32 bits.
  std::map<std::string, int64_t, std::less<>> others;

  // The bytes per element for a tensor of the program.
  int64_t of(std::string_view tensor) const;
  // The same for a tensor's name in the file.
  int64_t of_file(std::string_view name) const;
};

// The widths of the adapter in this folder; 32 bits, as PEFT writes them, where there is no file.
// Opens only the file's header. Throws UserError as SafetensorsFile does.
AdapterWidths adapter_widths(const std::filesystem::path& folder);

}  // namespace snug::plan
