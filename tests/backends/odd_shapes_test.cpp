// Products of sizes that nobody chose: rows, columns and inner dimensions up to 130, sampled, in
// every form, on every instruction set that this processor has. Each level runs in processes of its
// own, so that one that a signal ends is a failure that names its product, and the others still
// run.
//
// SNUG_ODD_SHAPES is how many products a level is given (200), SNUG_ODD_SHAPES_SEED which (1). The
// counts are properties of the test (--gtest_output=json:FILE).
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <random>

#include "matmul_case.h"

namespace snug::backends::cpu {
namespace {

constexpr int64_t kLargest = 130;
// A process keeps every primitive that it made.
constexpr int64_t kCasesAProcess = 1000;

// What a child tells its parent, in memory that both have.
struct Report {
  Isa isa;          // that it runs on
  int64_t current;  // index of the case
  int64_t wrong;    // cases that failed a check
};

class SharedReport {
 public:
  SharedReport()
      : report_(static_cast<Report*>(::mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedReport() { ::munmap(report_, sizeof(Report)); }
  SharedReport(const SharedReport&) = delete;
  SharedReport& operator=(const SharedReport&) = delete;
  Report* operator->() { return report_; }

 private:
  Report* report_;
};

struct LevelOutcome {
  int64_t ran = 0;
  int64_t wrong = 0;
  std::vector<std::string> died;  // signal and case
};

using Run = std::function<void(const MatmulCase&)>;

// Cases [begin, end) in a child that is held to `isa`. Returns how it ended, as waitpid says.
int run_in_child(const std::vector<MatmulCase>& cases, int64_t begin, int64_t end, Isa isa,
                 const Run& run, SharedReport& report) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("SNUG_ISA", std::string(name_of(isa)).c_str(), 1);
    report->isa = detect_isa();
    if (report->isa == isa)
      for (report->current = begin; report->current < end; ++report->current) {
        const auto failures = [] {
          return ::testing::UnitTest::GetInstance()
              ->current_test_info()
              ->result()
              ->total_part_count();
        };
        const int before = failures();
        try {
          run(cases[static_cast<size_t>(report->current)]);
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
        if (failures() != before) ++report->wrong;
      }
    std::fflush(nullptr);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

// On one level; nothing ran where the processor does not have it.
LevelOutcome run_level(const std::vector<MatmulCase>& cases, Isa isa, const Run& run) {
  LevelOutcome outcome;
  SharedReport report;
  const auto count = static_cast<int64_t>(cases.size());
  for (int64_t begin = 0; begin < count;) {
    const int64_t end = std::min(count, begin + kCasesAProcess);
    const int status = run_in_child(cases, begin, end, isa, run, report);
    if (report->isa != isa) return outcome;
    const bool died = WIFSIGNALED(status);
    if (died)
      outcome.died.push_back(fmt::format("{}: {}", strsignal(WTERMSIG(status)),
                                         describe(cases[static_cast<size_t>(report->current)])));
    begin = died ? report->current + 1 : end;
    outcome.ran = begin;
  }
  outcome.wrong = report->wrong;
  return outcome;
}

int64_t number_from(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoll(text, nullptr, 10);
}

class CaseSource {
 public:
  explicit CaseSource(int64_t seed) : generator_(static_cast<uint64_t>(seed)) {}

  MatmulCase of(int64_t m, int64_t n, int64_t k, bool bf16) {
    const int64_t gap = below(3) == 0 ? 1 + below(5) : 0;
    return {.m = m,
            .n = n,
            .k = k,
            .transpose_a = below(2) == 0,
            .transpose_b = below(2) == 0,
            .factors = bf16 ? DType::bf16 : DType::f32,
            .result = bf16 && below(2) == 0 ? DType::bf16 : DType::f32,
            .alpha = below(2) == 0 ? 1.0F : -0.37F,
            .sum = static_cast<MatmulCase::Sum>(below(4)),
            .gap_a = gap,
            .gap_b = gap,
            .gap_c = gap};
  }
  MatmulCase any(bool bf16) { return of(size(), size(), size(), bf16); }

 private:
  int64_t below(int64_t bound) {
    return std::uniform_int_distribution<int64_t>(0, bound - 1)(generator_);
  }
  int64_t size() { return 1 + below(kLargest); }

  std::mt19937_64 generator_;
};

// A quarter of them around the sizes where pairs, lanes and tiles end, as far as that list goes.
std::vector<MatmulCase> cases_for(Isa isa, int64_t count, int64_t seed) {
  CaseSource source(seed);
  std::vector<MatmulCase> edges;
  const bool bf16 = has_bf16_products(isa);
  for (const int64_t k : {63, 1, 2, 3, 15, 17, 31, 33, 64, 65, 95, 127, 129})
    for (const int64_t n : {16, 1, 7, 15, 17, 31, 32, 33})
      for (const int64_t m : {47, 1, 5, 17, 31, 33, 64, 65})
        edges.push_back(source.of(m, n, k, bf16));
  std::vector<MatmulCase> cases;
  for (int64_t i = 0; i < count; ++i) {
    const auto edge = static_cast<size_t>(i / 4);
    cases.push_back(i % 4 == 0 && edge < edges.size() ? edges[edge]
                                                      : source.any(bf16 && i % 8 != 1));
  }
  return cases;
}

TEST(OddShapes, OnEveryInstructionSet) {
  const int64_t count = number_from("SNUG_ODD_SHAPES", 200);
  const int64_t seed = number_from("SNUG_ODD_SHAPES_SEED", 1);
  for (const Isa isa : {Isa::v2, Isa::v3, Isa::v4, Isa::v4_bf16, Isa::amx}) {
    const LevelOutcome outcome = run_level(cases_for(isa, count, seed), isa, check);
    const std::string level(name_of(isa));
    RecordProperty(level + "_products", std::to_string(outcome.ran));
    RecordProperty(level + "_wrong", std::to_string(outcome.wrong));
    RecordProperty(level + "_died", std::to_string(outcome.died.size()));
    fmt::print("{}: {} products, {} wrong, {} ended by a signal\n", level, outcome.ran,
               outcome.wrong, outcome.died.size());
    EXPECT_EQ(outcome.wrong, 0) << level;
    for (const std::string& died : outcome.died) ADD_FAILURE() << level << ": " << died;
    EXPECT_TRUE(outcome.ran == count || (outcome.ran == 0 && isa != Isa::v2)) << level;
  }
}

TEST(OddShapes, OneThatASignalEndsIsNamedAndTheOthersRun) {
  const std::vector<MatmulCase> cases = cases_for(Isa::v2, 5, 1);
  const LevelOutcome outcome = run_level(cases, Isa::v2, [&](const MatmulCase& c) {
    if (c.k == cases[2].k) ::raise(SIGILL);
  });
  EXPECT_EQ(outcome.ran, 5);
  ASSERT_EQ(outcome.died.size(), 1U);
  EXPECT_EQ(outcome.died[0], "Illegal instruction: " + describe(cases[2]));
}

}  // namespace
}  // namespace snug::backends::cpu
