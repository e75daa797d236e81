#include "base/build_id.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/checksum.h"
#include "base/file.h"

namespace snug::base {
namespace {

constexpr size_t round_up(size_t bytes) { return (bytes + 3) / 4 * 4; }

using namespace std::string_view_literals;

constexpr std::string_view kGnu = "GNU\0"sv;

// The notes follow one another. Each has a header, a name and a description, all padded to whole
// words.
std::string id_in(std::string_view notes) {
  ElfW(Nhdr) header{};
  while (notes.size() >= sizeof header) {
    std::memcpy(&header, notes.data(), sizeof header);
    const size_t name = sizeof header;
    const size_t description = name + round_up(header.n_namesz);
    const size_t end = description + round_up(header.n_descsz);
    if (end > notes.size()) break;
    if (header.n_type == NT_GNU_BUILD_ID && notes.substr(name, kGnu.size()) == kGnu) {
      std::string digits;
      for (const char byte : notes.substr(description, header.n_descsz))
        digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
      return digits;
    }
    notes.remove_prefix(end);
  }
  return {};
}

// The first entry is the program itself; its libraries follow.
int read_notes(struct dl_phdr_info* program, size_t /*bytes*/, void* result) {
  for (int i = 0; i < program->dlpi_phnum; ++i) {
    const auto& segment = program->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* begin = reinterpret_cast<const char*>(program->dlpi_addr + segment.p_vaddr);
    auto& id = *static_cast<std::string*>(result);
    if (id.empty()) id = id_in({begin, segment.p_memsz});
  }
  return 1;
}

std::string checksum_of_program() {
  const File file = File::open_for_reading(std::filesystem::read_symlink("/proc/self/exe"));
  std::vector<char> block(static_cast<size_t>(kChecksumPieceBytes));
  ChecksumStream stream;
  for (int64_t begin = 0; begin < file.size(); begin += kChecksumPieceBytes) {
    const int64_t bytes = std::min(kChecksumPieceBytes, file.size() - begin);
    file.read_at(begin, block.data(), bytes);
    stream.add(block.data(), bytes);
  }
  return checksum_text(stream.value());
}

}  // namespace

std::string build_id() {
  std::string id;
  ::dl_iterate_phdr(read_notes, &id);
  return id.empty() ? checksum_of_program() : id;
}

}  // namespace snug::base
