#include "formats/gguf/file_signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace snug::formats {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::string_view begin;
  const char* description;
};

constexpr const char* kPacked =
    "is a packed file; unpack it, and give the .gguf file that was in it";
constexpr const char* kOldGgml =
    "is of llama.cpp's format before GGUF (until August 2023), which current programs do not read; "
    "download a GGUF file of the model, or give its Hugging Face folder as model=";

constexpr std::array kSignatures{
    Signature{"version https://git-lfs"sv,
              "is a Git LFS pointer: the text that stands for a large file in a repository; fetch "
              "the file itself with 'git lfs pull' or 'hf download'"},
    Signature{"PK\x03\x04"sv,
              "is a zip archive, as PyTorch's checkpoints and packed downloads are; unpack it if a "
              ".gguf file is in it; weights of PyTorch belong into a Hugging Face folder, which is "
              "given as model="},
    Signature{"\x80\x02"sv,
              "is a pickle of Python (an old checkpoint of PyTorch), which is no GGUF"},
    Signature{"\x80\x04"sv, "is a pickle of Python, which is no GGUF file"},
    Signature{"\x1f\x8b"sv, kPacked},
    Signature{"\x28\xb5\x2f\xfd"sv, kPacked},
    Signature{"\xfd\x37zXZ"sv, kPacked},
    Signature{"BZh"sv, kPacked},
    Signature{"7z\xbc\xaf\x27\x1c"sv, kPacked},
    Signature{"Rar!"sv, kPacked},
    Signature{"\x89HDF"sv, "is an HDF5 file (weights of Keras), which is no GGUF file"},
    Signature{"lmgg"sv, kOldGgml},
    Signature{"fmgg"sv, kOldGgml},
    Signature{"tjgg"sv, kOldGgml},
    Signature{"algg"sv, kOldGgml},
    Signature{"FUGG"sv,
              "is a GGUF file of a machine with big-endian numbers, which Snug does not "
              "read; download the little-endian one"},
};

// A length of 8 bytes and the beginning of a JSON object.
bool is_safetensors(std::string_view begin, int64_t file_bytes) {
  if (begin.size() < 9 || begin[8] != '{') return false;
  uint64_t length = 0;
  for (size_t byte = 0; byte < 8; ++byte)
    length |= uint64_t{static_cast<unsigned char>(begin[byte])} << (8 * byte);
  return length <= static_cast<uint64_t>(file_bytes);
}

bool begins_markup(std::string_view text) {
  std::string lower(text.substr(0, 64));
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.starts_with("<!doctype") || lower.starts_with("<html") || lower.starts_with("<?xml");
}

bool is_text(std::string_view begin) {
  return std::ranges::all_of(begin, [](unsigned char c) {
    return c >= 0x80 || std::isprint(c) != 0 || std::isspace(c) != 0;
  });
}

}  // namespace

std::string described_by_signature(std::string_view begin, int64_t file_bytes) {
  if (file_bytes == 0) return "is empty; download or copy it again";
  for (const Signature& signature : kSignatures)
    if (begin.starts_with(signature.begin)) return signature.description;
  if (is_safetensors(begin, file_bytes))
    return "is a safetensors file, not GGUF; a Hugging Face folder of such files is a model as it "
           "is: give the folder as model=";
  if (std::ranges::all_of(begin, [](char c) { return c == '\0'; }))
    return "holds zeros where a GGUF file begins: a download that was not finished; download it "
           "again";
  std::string_view text = begin;
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n\xef\xbb\xbf"), text.size()));
  if (begins_markup(text))
    return "is a web page: the download brought a page (of a login, or about an error) in place of "
           "the file; use the link that downloads, or 'hf download'";
  if (is_text(begin)) return "is a text file, not GGUF; give the .gguf file";
  std::string shown;
  for (const unsigned char c : begin.substr(0, 4)) shown += fmt::format(" {:02x}", c);
  return fmt::format(
      "is not a GGUF file: it begins with the bytes{}, not with 'GGUF'; is it "
      "another file, or damaged? Download or copy it again",
      shown);
}

}  // namespace snug::formats
