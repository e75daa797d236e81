// The style of the house, as far as a program can check it: floors only look down, files have
// no forbidden names, sources are listed sorted.
#include "../source_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace snug {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = test::source_folder();
constexpr const char* kThisFile = "tests/style/style_test.cpp";

// Floors of docs/architecture.md; a folder includes only itself and folders on lower floors.
const std::map<std::string, int> kFloors{
    {"base", 0},    {"comm", 1},     {"formats", 1}, {"text", 1},   {"scores", 2},
    {"program", 2}, {"models", 3},   {"methods", 4}, {"passes", 4}, {"plan", 5},
    {"report", 6},  {"backends", 6}, {"runtime", 7}, {"engine", 8}, {"convert", 9},
    {"train", 9},   {"generate", 9}, {"bench", 9},   {"serve", 10}, {"cli", 11}};

std::vector<fs::path> sources(const char* folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
    const auto extension = entry.path().extension();
    if (extension == ".h" || extension == ".cuh" || extension == ".cpp" || extension == ".cu")
      paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream stream(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string floor_folder(const fs::path& path) {
  return fs::relative(path, kRoot / "src").begin()->string();
}

bool is_in(const fs::path& path, const char* folder) {
  return path.string().starts_with((kRoot / folder).string() + "/");
}

TEST(Style, IncludesOnlyGoDown) {
  const std::regex include("^#include \"([a-z_]+)/.*");
  for (const fs::path& path : sources("src")) {
    const std::string folder = floor_folder(path);
    ASSERT_TRUE(kFloors.contains(folder)) << path << ": a folder without a floor";
    for (const std::string& line : lines_of(path)) {
      std::smatch match;
      if (!std::regex_match(line, match, include)) continue;
      const std::string target = match[1];
      ASSERT_TRUE(kFloors.contains(target)) << path << ": " << line;
      const bool down = target == folder || kFloors.at(target) < kFloors.at(folder);
      EXPECT_TRUE(down) << path << ": " << line << " looks up or sideways";
    }
  }
}

// A long file is a place to look and no fault: none is cut, or joined, for the number's sake.
TEST(Style, LongFilesAreNamed) {
  constexpr size_t kLongLines = 600;
  for (const char* folder : {"src", "tests"})
    for (const fs::path& path : sources(folder))
      if (const size_t lines = lines_of(path).size(); lines > kLongLines)
        fmt::print("warning: {} has {} lines\n", path.string(), lines);
}

TEST(Style, NamesSayWhatAFileHolds) {
  for (const char* folder : {"src", "tests"})
    for (const fs::path& path : sources(folder)) {
      const std::string stem = path.stem().string();
      for (const char* word : {"util", "helper", "common", "misc"})
        EXPECT_EQ(stem.find(word), std::string::npos) << path;
      EXPECT_TRUE(
          std::all_of(stem.begin(), stem.end(),
                      [](char c) { return std::islower(c) || std::isdigit(c) || c == '_'; }))
          << path << " is not snake_case";
    }
}

TEST(Style, HeadersOpenWithTheirPurpose) {
  for (const fs::path& path : sources("src")) {
    if (path.extension() != ".h" && path.extension() != ".cuh") continue;
    const auto lines = lines_of(path);
    ASSERT_FALSE(lines.empty()) << path;
    EXPECT_TRUE(lines[0].starts_with("// ")) << path;
    EXPECT_NE(std::find(lines.begin(), lines.end(), "#pragma once"), lines.end()) << path;
  }
}

// Elsewhere nothing bounds how deep values nest.
TEST(Style, JsonIsParsedInOnePlace) {
  const std::regex parses("[jJ]son::parse\\(");
  for (const fs::path& path : sources("src"))
    for (const std::string& line : lines_of(path))
      EXPECT_FALSE(path.filename() != "json_parser.cpp" && std::regex_search(line, parses))
          << path << ": " << line << " goes past base/json_parser.h";
}

// Operands have names (program/kinds/operands.h), which are no texts elsewhere.
TEST(Style, OperandsAreAskedForByName) {
  const std::regex positional(
      "(reads|writes|updates)(\\[[0-9]|\\.(at|first|last)\\(|\\.(front|back)\\(\\)|\\.size\\(\\) -|"
      "\\.(data|begin)\\(\\)(\\[| \\+ [0-9]))|"
      "view\\.(read|write|update)\\(");
  const std::regex by_text("(find|add|replace|remove)_operand\\([^;]*\"|OperandName[({][^)}]*\"");
  for (const fs::path& path : sources("src")) {
    const bool is_kind = is_in(path, "src/program/kinds");
    for (const std::string& line : lines_of(path)) {
      EXPECT_FALSE(std::regex_search(line, positional)) << path << ": " << line;
      if (is_kind || line.find('"') == std::string::npos) continue;
      EXPECT_FALSE(std::regex_search(line, by_text)) << path << ": " << line;
    }
  }
}

// An index into a list of operands says nothing of what the operand is. The parts of a kind whose
// operands repeat are numbered by the kind (balance_loss); operands.cpp is what finds the others.
TEST(Style, OperandsHaveNoNumbersInGeneralCode) {
  const std::regex indexed("\\b(reads|writes|updates|outputs)\\[[^\\]]");
  for (const fs::path& path : sources("src")) {
    const std::string folder = path.parent_path().filename().string();
    const bool is_of_kinds = is_in(path, "src/program/kinds") || folder == "kernels" ||
                             path.filename() == "balance_loss.cpp" ||
                             path == kRoot / "src/program/ir/operands.cpp";
    if (is_of_kinds) continue;
    for (const std::string& line : lines_of(path))
      EXPECT_FALSE(std::regex_search(line, indexed)) << path << ": " << line;
  }
}

// The kinds of program/kinds/kinds.h: a struct and a value of the enumeration for each, as "A|B".
struct KindNames {
  std::string structs;
  std::string values;
};

KindNames kind_names() {
  const std::regex listed("  X\\(([A-Za-z0-9]+), ([a-z0-9_]+)\\).*");
  KindNames names;
  for (const std::string& line : lines_of(kRoot / "src/program/kinds/kinds.h")) {
    std::smatch match;
    if (!std::regex_match(line, match, listed)) continue;
    names.structs += (names.structs.empty() ? "" : "|") + match[1].str();
    names.values += (names.values.empty() ? "" : "|") + match[2].str();
  }
  return names;
}

// Files that are about some kinds, outside program/kinds: rewrites of these, what a backend does
// with them, and what benchmarks the products of a job. They name no others.
const std::map<std::string, std::set<std::string>> kMayName{
    {"backends/loss_operands.h", {"LinearCrossEntropyTrain"}},
    {"backends/cpu/attention/attention_grad.cpp", {"AttentionGrad"}},
    {"backends/cpu/norm/layer_norm.cpp", {"LayerNorm"}},
    {"backends/cpu/loss/linear_cross_entropy.cpp",
     {"LinearCrossEntropy", "LinearCrossEntropyTrain"}},
    {"backends/cuda/attention/attention_note.cpp", {"Attention", "AttentionGrad"}},
    {"backends/cuda/attention/check_program.cpp", {"Attention", "AttentionGrad"}},
    {"backends/cuda/attention/cudnn_attention.cpp", {"Attention", "AttentionGrad"}},
    {"backends/cuda/attention/cudnn_needs.cpp", {"Attention", "AttentionGrad"}},
    {"backends/cuda/product/few_rows.cpp",
     {"AddBias", "CacheWrite", "MatmulNf4", "RmsNorm", "Rope", "SiluMul"}},
    {"backends/cuda/attention/attention_needs.cpp", {"AttentionGrad"}},
    {"backends/cuda/attention/attention_needs.h", {"AttentionGrad"}},
    {"backends/cuda/product/few_rows_needs.cpp",
     {"AddBias", "CacheWrite", "Matmul", "MatmulNf4", "RmsNorm", "Rope", "SiluMul"}},
    {"backends/cuda/loss/linear_cross_entropy_needs.h", {"LinearCrossEntropyTrain"}},
    {"backends/cuda/norm/norm_needs.cpp", {"LayerNormGrad", "RmsNormGrad"}},
    {"backends/cuda/attention/rope.cpp", {"CacheWrite", "Rope"}},
    {"bench/job_products.cpp", {"LinearCrossEntropyTrain", "Matmul"}},
    {"methods/lora.cpp", {"Matmul", "RowNorms", "scale_columns"}},
    {"methods/lora_experts.cpp", {"GroupedMatmul"}},
    {"methods/lora_slots.cpp", {"Matmul"}},
    {"methods/lora_targets.cpp", {"AddBias", "Embedding", "Matmul", "Route"}},
    {"methods/loss_builder.cpp", {"LinearCrossEntropy"}},
    {"passes/lowering/fuse.cpp", {"Accumulate", "Matmul", "accumulate", "add"}},
    {"passes/lowering/fuse_low_rank.cpp", {"Matmul", "dequantize_nf4"}},
    {"passes/lowering/quantize.cpp",
     {"GroupedMatmul", "Matmul", "RowNorms", "grouped_matmul", "matmul", "row_norms"}},
    {"passes/memory/schedule.cpp", {"Add"}},
    {"passes/gradient/update_in_backward.cpp", {"ClipFactor"}}};

// Code that applies to every kind asks for traits (program/kinds/traits.h), or is a template that
// takes any kind. Code asks for a particular kind by its type, by its value of the enumeration, or
// by attributes of that kind: is(operation, Rope{}), attributes == Attributes(Rope{}). Creating an
// operation of a kind does not count as asking for it. Files of text/ are skipped, since
// text/chat/jinja has an enumeration Kind of its own.
TEST(Style, GeneralCodeNamesNoKind) {
  const KindNames kinds = kind_names();
  const std::regex names_a_kind(
      "(get_if|get|is|is_same_v|kKindOf)<([A-Za-z]+, )?(const )?"
      "(program::)?(" +
      kinds.structs +
      ")(, [A-Za-z]+)?>|"
      "(^|[^A-Za-z])Kind::(" +
      kinds.values +
      ")\\b|"
      "using [A-Za-z]+ = (program::)?(" +
      kinds.structs +
      ");|"
      "starts_with\\(\"(" +
      kinds.values + ")");
  constexpr std::array<size_t, 4> kGroups{5, 8, 10, 11};
  // So many alternatives are slow to try on every line.
  const std::regex may_name("(get_if|get|is|is_same_v|kKindOf)<|Kind::|^ *using .*=|starts_with");
  const std::regex asks_by_value(
      "(^|[^A-Za-z_])(is|are|has|have|holds|same|any|all|none|count|find)(_[a-z_]*)?"
      "(<[^<>;]*>)?\\(([^;()]|\\([^;()]*\\))*?\\b(" +
      kinds.structs +
      ")\\{|"
      "[=!]= (program::)?(Attributes[({])?(program::)?(" +
      kinds.structs +
      ")\\{|"
      "\\b(" +
      kinds.structs + ")\\{[^}]*\\}\\)?\\.kind\\(\\)");
  constexpr std::array<size_t, 3> kValueGroups{6, 10, 11};
  const std::regex may_have_value("[A-Za-z0-9]\\{");
  std::map<std::string, std::set<std::string>> named;
  for (const fs::path& path : sources("src")) {
    const std::string file = fs::relative(path, kRoot / "src").string();
    if (file.starts_with("program/kinds/") || file.starts_with("text/")) continue;
    const auto look = [&](const std::string& line, const std::regex& regex, const auto& groups) {
      for (std::sregex_iterator match(line.begin(), line.end(), regex), end; match != end; ++match)
        for (const size_t group : groups)
          if ((*match)[group].matched) named[file].insert((*match)[group].str());
    };
    for (const std::string& line : lines_of(path)) {
      if (std::regex_search(line, may_name)) look(line, names_a_kind, kGroups);
      if (std::regex_search(line, may_have_value)) look(line, asks_by_value, kValueGroups);
    }
  }
  for (const auto& [file, found] : named) {
    const auto allowed = kMayName.find(file);
    for (const std::string& kind : found)
      EXPECT_TRUE(allowed != kMayName.end() && allowed->second.contains(kind))
          << "src/" << file << " names the kind " << kind;
  }
  for (const auto& [file, allowed] : kMayName)
    EXPECT_EQ(named[file], allowed) << "src/" << file << " no longer names what it may";
}

// Programs of a job, and tensors that code refers to without having made them: program_name.h and
// tensor_names.h. Operands of a kind have names of their own.
TEST(Style, ProgramsAndTensorsAreNamedOnce) {
  const std::set<std::string> namers{"program_name.h", "tensor_names.h", "tensor_names.cpp"};
  const std::regex means_nothing_else(
      "\"(micro_first|micro_next|prefill|decode|query_bounds|key_bounds|output_rows|"
      "inverse_tokens|gradient_norm|clip_factor|(host|gradient|master|moment1|moment2|"
      "moment_rows|moment_columns|scale1|scale2)\\.[^\"]*|staging\\.(slot|stage|absmax|values|"
      "scales)[^\"]*)\"");
  const std::regex looked_up(
      "(find|tensor|has|set_input|result<[a-z0-9_]+>|run|load|index_of|Builder [a-z]+|batch|"
      "declare)\\(\"(load|load_adapter|restore|save|save_state|prepare|update|evaluate|tokens|"
      "targets|positions|slots|learning_rate|"
      "step|random|loss|logits)\"");
  for (const fs::path& path : sources("src")) {
    if (is_in(path, "src/program/kinds")) continue;
    if (namers.contains(path.filename().string())) continue;
    for (const std::string& line : lines_of(path)) {
      EXPECT_FALSE(std::regex_search(line, means_nothing_else)) << path << ": " << line;
      EXPECT_FALSE(std::regex_search(line, looked_up)) << path << ": " << line;
    }
  }
}

// What a tensor is, its fields say (program/ir/tensor.h): a name is for finding it and for lists.
// What files call tensors follows from names, in tensor_names.cpp and
// runtime/storage/file_names.cpp.
TEST(Style, NoNameOfATensorIsTakenApart) {
  const std::set<std::string> folders{"program", "plan", "passes", "runtime"};
  const std::regex takes_apart(
      "\\b(last_part|stream_of)(\\(|\\.h)|"
      "(tensor|bounds|operand|weight|input|output)[a-z_]*(\\([^()]*\\))?\\.name\\."
      "(starts_with|ends_with|find|rfind|contains|compare|substr)\\(");
  for (const fs::path& path : sources("src")) {
    if (!folders.contains(floor_folder(path))) continue;
    for (const std::string& line : lines_of(path))
      EXPECT_FALSE(std::regex_search(line, takes_apart)) << path << ": " << line;
  }
}

// Two types of one name in a namespace are seen by no compiler where no file includes both, and by
// no reader either.
TEST(Style, ATypeHasItsNameInItsNamespaceAlone) {
  const std::regex opens("namespace ([a-z_:]+) \\{");
  const std::regex defines(
      "(struct|class|enum class|union) (alignas\\([^)]*\\) )?([A-Za-z0-9_]+)( [^;]*)?\\{.*");
  std::map<std::string, std::set<std::string>> files_of;
  for (const fs::path& path : sources("src")) {
    std::string space;
    bool unnamed = false;
    for (const std::string& line : lines_of(path)) {
      std::smatch match;
      if (std::regex_match(line, match, opens)) space = match[1];
      if (line == "namespace {") unnamed = true;
      if (line == "}  // namespace") unnamed = false;
      if (!unnamed && std::regex_match(line, match, defines))
        files_of[space + "::" + match[3].str()].insert(fs::relative(path, kRoot).string());
    }
  }
  EXPECT_GT(files_of.size(), 500U);
  for (const auto& [name, files] : files_of)
    EXPECT_EQ(files.size(), 1U) << name << " is defined in "
                                << fmt::format("{}", fmt::join(files, ", "));
}

TEST(Style, EverySourceIsListed) {
  for (const char* folder : {"src", "tests"})
    for (const fs::path& path : sources(folder)) {
      if (path.extension() == ".h" || path.extension() == ".cuh") continue;
      bool listed = false;
      for (fs::path up = path.parent_path(); up != kRoot && !listed; up = up.parent_path())
        for (const std::string& line : lines_of(up / "CMakeLists.txt"))
          listed = listed || line.find(fs::relative(path, up).string()) != std::string::npos;
      EXPECT_TRUE(listed) << path << " is in no CMakeLists.txt";
    }
}

// CMake's own words for tests are said in one place, which keeps tests from their user.
TEST(Style, EveryTestIsIsolated) {
  const std::regex own("(^|[^_a-z])(add_test|set_tests_properties|gtest_discover_tests)\\(");
  std::vector<fs::path> lists{kRoot / "CMakeLists.txt"};
  for (const char* folder : {"bench", "src", "tests", "cmake"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
      if (entry.path().filename() == "CMakeLists.txt" || entry.path().extension() == ".cmake")
        lists.push_back(entry.path());
  for (const fs::path& path : lists)
    for (const std::string& line : lines_of(path))
      if (path != kRoot / "cmake/snug.cmake" && !line.starts_with("#")) {
        EXPECT_FALSE(std::regex_search(line, own))
            << path << ": " << line << ": use snug_test_entry";
      }
}

// Two runs at once would write one file.
TEST(Style, TestsHaveNoFixedPlaces) {
  for (const fs::path& path : sources("tests")) {
    if (path == kRoot / "tests/base/temporary_folder.h" || path == kRoot / kThisFile) continue;
    for (const std::string& line : lines_of(path))
      for (const char* place : {"temp_directory_path", "\"/tmp", "tmpnam"})
        EXPECT_EQ(line.find(place), std::string::npos) << path << ": " << line;
  }
}

// GoogleTest's own ways write to /tmp, which may be full.
TEST(Style, StreamsAreCapturedInMemory) {
  const std::regex own("(EXPECT|ASSERT)_(DEATH|EXIT)|CapturedStd|CaptureStd");
  for (const fs::path& path : sources("tests")) {
    if (path == kRoot / kThisFile) continue;
    for (const std::string& line : lines_of(path))
      EXPECT_FALSE(std::regex_search(line, own))
          << path << ": " << line << ": use tests/base/captured_stream.h";
  }
}

}  // namespace
}  // namespace snug
