#include "base/mistakes.h"

#include <gtest/gtest.h>

namespace snug::base {
namespace {

TEST(Mistakes, AreToldTogether) {
  Mistakes mistakes;
  EXPECT_NO_THROW(mistakes.throw_if_any());
  mistakes.gather([] {});
  mistakes.gather([] { throw UserError("one", {"a", 2, 3}); });
  try {
    mistakes.throw_if_any();
    FAIL();
  } catch (const UserErrors&) {
    FAIL() << "it is one";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "a:2:3: one");
  }
  mistakes.add("two");
  mistakes.add("one", {"a", 2, 3});
  Mistakes outer;
  outer.gather([&] { mistakes.throw_if_any(); });
  try {
    outer.throw_if_any();
    FAIL();
  } catch (const UserErrors& errors) {
    EXPECT_EQ(errors.mistakes(), (std::vector<std::string>{"a:2:3: one", "two"}));
    EXPECT_STREQ(errors.what(), "a:2:3: one\ntwo");
    EXPECT_EQ(errors.exit_code(), UserError::kExitCode);
  }
}

// A file's mistakes are found stage by stage, and told line by line.
TEST(Mistakes, AreInTheOrderOfTheLines) {
  Mistakes mistakes;
  mistakes.add("no place: 3:1: at all");
  mistakes.add("late", {"r.yaml", 12, 1});
  mistakes.add("other", {"dir:1/b.yaml", 1, 1});
  mistakes.add("wide", {"r.yaml", 2, 10});
  mistakes.add("'a' is on the command line", {"command line", 0, 0});
  mistakes.add("early", {"r.yaml", 2, 9});
  try {
    mistakes.throw_if_any();
    FAIL();
  } catch (const UserErrors& errors) {
    EXPECT_EQ(errors.mistakes(), (std::vector<std::string>{
                                     "r.yaml:2:9: early", "r.yaml:2:10: wide", "r.yaml:12:1: late",
                                     "dir:1/b.yaml:1:1: other", "no place: 3:1: at all",
                                     "command line: 'a' is on the command line"}));
  }
}

}  // namespace
}  // namespace snug::base
