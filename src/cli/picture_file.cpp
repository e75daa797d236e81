#include "cli/picture_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "base/console.h"
#include "base/file.h"
#include "base/lower_case.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;

bool is_page(const fs::path& path) {
  constexpr std::string_view kBegin = "<!doctype html";
  std::string begin(kBegin.size(), '\0');
  std::ifstream(path, std::ios::binary).read(begin.data(), std::ssize(begin));
  return base::lower_case(begin) == kBegin;
}

}  // namespace

void require_picture_file(const formats::Recipe& recipe) {
  std::error_code error;
  const fs::path path = recipe.picture;
  if (path.empty() || !fs::exists(path, error)) return;
  if (fs::is_directory(path, error))
    recipe.fail("picture",
                fmt::format("is {}, which is a folder; give a file in it", path.string()));
  if (!fs::is_regular_file(path, error) || fs::is_empty(path, error) || is_page(path)) return;
  recipe.fail("picture", fmt::format("is {}, which is there and is no page that may be replaced; "
                                     "give another name",
                                     path.string()));
}

void write_picture(const formats::Recipe& recipe, const std::string& page, const char* what) {
  if (recipe.picture.empty()) return;
  base::write_file_atomically(recipe.picture, page);
  base::say("the {} as a page: {}", what, recipe.picture);
}

}  // namespace snug::cli
