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

}  // namespace
}  // namespace snug::base
