// A fast build compiles several files of a library as one (cmake/snug.cmake), so what their
// anonymous namespaces define has one definition there. This finds what is defined twice without
// compiling: types, constants, and functions by the types of their parameters. Nor may such a
// constant have the name of one in the library's headers: where both are seen, neither can be
// named.
#include "../source_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace snug {
namespace {

namespace fs = std::filesystem;

const fs::path kSourceFolder = test::source_folder();

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

fs::path library_folder(const fs::path& source) {
  fs::path folder = source.parent_path();
  while (!fs::exists(folder / "CMakeLists.txt")) folder = folder.parent_path();
  return folder;
}

// Of a library's folder: the files with the property SKIP_UNITY_BUILD_INCLUSION, and the lists
// ("${kernels}") of such files.
std::set<std::string> files_apart(const fs::path& folder) {
  const std::regex apart(
      R"(set_source_files_properties\(([^)]*?)\s+PROPERTIES\s+SKIP_UNITY_BUILD_INCLUSION)");
  const std::string text = text_of(folder / "CMakeLists.txt");
  std::set<std::string> files;
  for (std::sregex_iterator each(text.begin(), text.end(), apart), end; each != end; ++each) {
    std::istringstream names((*each)[1]);
    for (std::string name; names >> name;) files.insert(name);
  }
  return files;
}

// Kernels are compiled file by file, for several processors.
bool is_united(const fs::path& source) {
  const fs::path folder = library_folder(source);
  const std::set<std::string> apart = files_apart(folder);
  const std::string part = source.parent_path().filename();
  return !apart.contains(fs::relative(source, folder)) && !apart.contains("${" + part + "}") &&
         part != "kernels";
}

// "const Shape& shape, std::map<int, int> by = {}" without names and defaults.
std::string types_of(const std::string& parameters) {
  static const std::regex kDefault(R"(\s*=[^,]*)");
  static const std::regex kName(R"(([&*>\w])\s+\w+(?=,|$))");
  static const std::regex kSpace(R"(\s+)");
  const std::string plain = std::regex_replace(parameters, kDefault, "");
  return std::regex_replace(std::regex_replace(plain, kSpace, " "), kName, "$1");
}

// What the anonymous namespaces of a text define.
std::set<std::string> definitions_of(const std::string& text) {
  static const std::regex kNamespace(R"(\nnamespace \{\n([\s\S]*?)\n\}  // namespace\n)");
  static const std::regex kType(R"((?:^|\n)(?:struct|class|enum class|enum) (\w+)[^;{]*\{)");
  static const std::regex kConstant(
      R"((?:^|\n)(?:inline |static )?const(?:expr)? [^;(={]*?(\w+)(?:\[\w*\])?\s*(?:=|\{))");
  static const std::regex kFunction(
      R"((?:^|\n)(?!using|return|static_assert)[A-Za-z_][^\n;={}()]* \*?&?(\w+)\(([^(){};]*)\)[^;{}]*\{)");
  std::set<std::string> found;
  for (std::sregex_iterator space(text.begin(), text.end(), kNamespace), end; space != end;
       ++space) {
    const std::string inside = (*space)[1];
    for (const std::regex* each : {&kType, &kConstant})
      for (std::sregex_iterator match(inside.begin(), inside.end(), *each); match != end; ++match)
        found.insert((*match)[1]);
    for (std::sregex_iterator match(inside.begin(), inside.end(), kFunction); match != end; ++match)
      found.insert(fmt::format("{}({})", (*match)[1].str(), types_of((*match)[2])));
  }
  return found;
}

// The constants that a header defines for all who include it.
std::set<std::string> shared_constants_of(const std::string& text) {
  static const std::regex kConstant(
      R"((?:^|\n)inline constexpr [^;(={]*?(\w+)(?:\[\w*\])?\s*(?:=|\{))");
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), kConstant), end; match != end; ++match)
    found.insert((*match)[1]);
  return found;
}

TEST(UnitedFiles, DefineEachNameOnce) {
  std::map<fs::path, std::map<std::string, std::string>> by_library;
  for (const auto& entry : fs::recursive_directory_iterator(kSourceFolder / "src"))
    if (entry.path().extension() == ".h" && entry.path().parent_path().filename() != "kernels")
      for (const std::string& name : shared_constants_of(text_of(entry.path())))
        by_library[library_folder(entry.path())].emplace(name, entry.path().filename().string());
  int definitions = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kSourceFolder / "src")) {
    const fs::path& path = entry.path();
    if (path.extension() != ".cpp" || !is_united(path)) continue;
    for (const std::string& name : definitions_of(text_of(path))) {
      ++definitions;
      const auto [other, is_new] =
          by_library[library_folder(path)].emplace(name, path.filename().string());
      EXPECT_TRUE(is_new) << path << " defines " << name << ", and so does " << other->second;
    }
  }
  EXPECT_GT(definitions, 1000);
}

TEST(UnitedFiles, SharedConstantsAreFound) {
  EXPECT_EQ(shared_constants_of("namespace snug {\n\ninline constexpr double kShare = 0.5;\n"
                                "inline constexpr std::array<int, 2> kBoth{1, 2};\n"
                                "inline int sum(int x) { return x; }\n"),
            (std::set<std::string>{"kShare", "kBoth"}));
}

TEST(UnitedFiles, DefinitionsAreFound) {
  const std::string text = R"(
namespace {

constexpr double kShare = 0.5;
constexpr std::array<int, 2> kBoth{1, 2};
struct Part {
  int size = 0;
};

std::string last_part(const std::string& name, int from = 0) {
  return name;
}

}  // namespace

int outside(int x) { return x; }
)";
  EXPECT_EQ(definitions_of(text), (std::set<std::string>{"kShare", "kBoth", "Part",
                                                         "last_part(const std::string&, int)"}));
}

}  // namespace
}  // namespace snug
