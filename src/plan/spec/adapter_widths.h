// How wide the elements of an adapter's tensors are in its files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace snug::plan {

struct AdapterWidths {
  // The bytes of an element, by PEFT's names in the file, of tensors that are not in 32 bits; PEFT
  // writes all in 32.
  std::map<std::string, int64_t, std::less<>> others;

  // The bytes of an element of a tensor of the program.
  int64_t of(std::string_view tensor) const;
  // The same by the name in the file.
  int64_t of_file(std::string_view name) const;
};

// The widths of the adapter in this folder; 32 bits as PEFT writes them where it has no file. Only
// the header of the file is opened. Throws UserError as SafetensorsFile does.
AdapterWidths adapter_widths(const std::filesystem::path& folder);

}  // namespace snug::plan
