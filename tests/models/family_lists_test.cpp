// The lists of models that readers see are those of the code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "base/file.h"
#include "models/families/families.h"
#include "source_folder.h"

namespace snug::models {
namespace {

std::string page(const char* name) {
  return base::read_text_file(test::source_folder() + "/" + name);
}

// A change of the families changes the README: the row that is expected here is the one to write.
TEST(FamilyLists, TheReadmeNamesTheModelsOfEveryFamily) {
  const std::string readme = page("README.md");
  for (const auto& [row, form] : {std::pair{"decoders", FamilyForm::decoder},
                                  std::pair{"mixtures of experts", FamilyForm::mixture},
                                  std::pair{"encoder-decoders", FamilyForm::encoder_decoder}}) {
    const std::string expected = fmt::format("| {} | {} |\n", row, model_names(form));
    EXPECT_NE(readme.find(expected), std::string::npos) << expected;
  }
}

// The first cell of a row lists types of models: "| olmo2, olmo3 | ...".
TEST(FamilyLists, ThePageOfModelsHasARowForEveryFamily) {
  std::istringstream lines(page("docs/models.md"));
  std::set<std::string> types;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ")) continue;
    std::istringstream cell(line.substr(2, line.find(" |") - 2));
    for (std::string type; cell >> type;) types.insert(type.substr(0, type.find(',')));
  }
  for (const Family* family : families()) {
    EXPECT_FALSE(family->models.empty()) << family->model_type;
    EXPECT_TRUE(types.contains(std::string(family->model_type))) << family->model_type;
  }
}

}  // namespace
}  // namespace snug::models
