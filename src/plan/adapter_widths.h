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
  // In bytes, of tensors that are not as PEFT writes them, in 32 bits. By their names in the file.
  std::map<std::string, int64_t, std::less<>> others;

  // Of a tensor of the program.
  int64_t of(std::string_view tensor) const;
};

// Of the adapter in this folder; as PEFT writes them where it has no file. Opens the file's header
// only. Throws UserError as SafetensorsFile does.
AdapterWidths adapter_widths(const std::filesystem::path& folder);

}  // namespace snug::plan
