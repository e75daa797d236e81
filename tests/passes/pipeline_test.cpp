// What the pipeline shows of the programs that it makes.
#include "passes/pipeline.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test_target.h"
#include "text_in_text_out.h"

namespace snug::passes {
namespace {

TEST(Pipeline, ShowsAProgramAfterEachPass) {
  const TestTarget target([](const program::OperationView&) { return true; });
  Pipeline pipeline(target);
  std::vector<std::string> passes;
  std::string last;
  pipeline.show_to([&](const PassRecord& record, const program::Program& made) {
    EXPECT_EQ(record.program, "update");
    EXPECT_EQ(record.operations, made.operations.size());
    passes.push_back(record.pass);
    last = print(made);
  });
  const program::Program made = pipeline.plain(parse(R"(program update
tensor a (4, 4) f32 weight run
tensor b (4, 4) f32 weight run
c (4, 4) f32 = add(a, b)
)"));
  EXPECT_EQ(passes, (std::vector<std::string>{"lower", "host_copies", "mark_constants"}));
  EXPECT_EQ(last, print(made));
  ASSERT_EQ(pipeline.records().size(), passes.size());
}

}  // namespace
}  // namespace snug::passes
