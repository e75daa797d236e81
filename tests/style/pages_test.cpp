// What the pages say of the tree: links lead somewhere, files that are named are there, the index
// has every page once, and the README stays short.
#include "../source_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace snug {
namespace {

namespace fs = std::filesystem;

const fs::path& tree() {
  static const fs::path root = test::source_folder();
  return root;
}

std::vector<std::string> page_lines(const fs::path& page) {
  std::ifstream stream(page);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> found{tree() / "README.md", tree() / "CONTRIBUTING.md"};
  for (const char* folder : {"docs", "bench"})
    for (const auto& entry : fs::directory_iterator(tree() / folder))
      if (entry.path().extension() == ".md") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// As GitHub makes it of a heading.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading.substr(heading.find(' ') + 1)) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '_' || c == '-' || byte >= 0x80)
      anchor += static_cast<char>(std::tolower(byte));
    else if (c == ' ')
      anchor += '-';
  }
  return anchor;
}

std::set<std::string> anchors_of(const fs::path& page) {
  std::set<std::string> anchors;
  for (const std::string& line : page_lines(page))
    if (line.starts_with("#")) anchors.insert(anchor_of(line));
  return anchors;
}

// Every match of the expression in a page's text, without its blocks of code.
std::vector<std::string> matches(const fs::path& page, const std::regex& expression) {
  std::vector<std::string> found;
  for (const std::string& line : page_lines(page)) {
    if (line.starts_with("    ")) continue;
    for (std::sregex_iterator match(line.begin(), line.end(), expression), end; match != end;
         ++match)
      found.push_back((*match)[1]);
  }
  return found;
}

TEST(Pages, HaveLinksThatLeadSomewhere) {
  const std::regex link("\\]\\(([^) ]+)\\)");
  for (const fs::path& page : pages())
    for (const std::string& target : matches(page, link)) {
      if (target.starts_with("http")) continue;
      const size_t hash = target.find('#');
      const std::string file = target.substr(0, hash);
      const fs::path path = file.empty() ? page : page.parent_path() / file;
      ASSERT_TRUE(fs::exists(path)) << page << " links to " << target;
      if (hash == std::string::npos || path.extension() != ".md") continue;
      EXPECT_TRUE(anchors_of(path).contains(target.substr(hash + 1)))
          << page << " links to " << target;
    }
}

TEST(Pages, NameFilesThatAreThere) {
  const std::regex named("`((src|tests|scripts|docs|examples)/[A-Za-z0-9_./-]+)`");
  for (const fs::path& page : pages())
    for (const std::string& path : matches(page, named))
      EXPECT_TRUE(fs::exists(tree() / path)) << page << " names " << path;
}

TEST(Pages, AreInTheIndexOnce) {
  const fs::path index = tree() / "docs/README.md";
  std::multiset<std::string> listed;
  for (const std::string& target : matches(index, std::regex("\\]\\(([a-z0-9_]+\\.md)\\)")))
    listed.insert(target);
  for (const fs::path& page : pages()) {
    if (page.parent_path() != index.parent_path() || page == index) continue;
    EXPECT_EQ(listed.count(page.filename().string()), 1U) << page;
  }
}

TEST(Pages, BeginWithAShortOne) { EXPECT_LE(page_lines(tree() / "README.md").size(), 150U); }

}  // namespace
}  // namespace snug
