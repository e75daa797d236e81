// Ranks read and make their parts of weights: together they hold the bytes that one rank holds, and
// read each byte of what is sharded once.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "base/checksum.h"
#include "base/temporary_folder.h"
#include "convert/folder/quantize_folder.h"
#include "formats/folder/tensor_index.h"
#include "program/kinds/transfer/storage.h"
#include "rank_runs.h"
#include "runtime/execution/trace_check.h"
#include "runtime/loading/load_weights.h"
#include "runtime/loading/read_tensors.h"
#include "runtime/loading/stored_weight.h"
#include "runtime/saving/adapter.h"
#include "runtime/saving/save_model.h"
#include "runtime/storage/perform.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;
using program::DType;
using program::ProgramName;
using testing::expect_no_errors;
using testing::expect_parts_of;
using testing::full_shard;
using testing::on_ranks;
using testing::TemporaryFolder;
using testing::TinyOptions;
using testing::TinyRun;

// A model's folder, in f32, of random values.
class Ranks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder();
    TinyOptions options{.model = testing::rank_model(), .init_seed = 5};
    options.threads = 1;
    TinyRun run(options);
    random_weights(options.model, run.executor());
    run.executor().run(ProgramName::prepare);
    save_model(folder(), {options.model, {}}, run.executor());
  }
  static void TearDownTestSuite() { delete folder_; }
  static fs::path folder() { return *folder_ / "model"; }

  // What one rank loads, and each of several.
  static void check(const TinyOptions& options, const fs::path& folder, int ranks) {
    SCOPED_TRACE(fmt::format("{} ranks", ranks));
    TinyRun one(options);
    const LoadReport whole = load_weights(folder, options.model, one.executor());
    std::atomic<int64_t> bytes = 0, around = 0;
    expect_no_errors(on_ranks(options, full_shard(ranks), [&](TinyRun& run, int) {
      const LoadReport report = load_weights(folder, options.model, run.executor());
      bytes += report.bytes_read;
      around += report.bytes_around;
      EXPECT_EQ(report.digest, whole.digest);
      const std::lock_guard lock(mutex_);
      expect_parts_of(one, run, ProgramName::load);
    }));
    EXPECT_EQ(bytes - around, whole.bytes_read) << "each byte once";
    EXPECT_GT(around, 0) << "pieces of checksums lie on two ranks";
  }

  static TinyOptions lora() {
    TinyOptions options{.model = testing::rank_model(), .method = formats::Method::lora};
    options.compute = DType::bf16;
    options.threads = 1;
    return options;
  }
  static TinyOptions qlora(bool nested) {
    TinyOptions options = lora();
    options.quantization = passes::QuantizeOptions{.nested = nested, .kept = {}};
    return options;
  }

  static TemporaryFolder* folder_;
  static std::mutex mutex_;
};
TemporaryFolder* Ranks::folder_ = nullptr;
std::mutex Ranks::mutex_;

TEST_F(Ranks, ReadTheirPartsOfWeights) {
  TinyOptions full{.model = testing::rank_model()};
  full.threads = 1;
  for (int ranks = 2; ranks <= 5; ++ranks) check(full, folder(), ranks);
  check(lora(), folder(), 3);  // rounded
}

TEST_F(Ranks, QuantiseToTheSameBytesWhateverTheirNumber) {
  for (const bool nested : {false, true})
    for (int ranks = 2; ranks <= 4; ++ranks) check(qlora(nested), folder(), ranks);
}

TEST_F(Ranks, ReadTheirPartsOfAFolderInFourBits) {
  for (const bool nested : {false, true}) {
    const fs::path quantised = *folder_ / (nested ? "double" : "single");
    convert::FolderQuantizeOptions options;
    options.double_quant = nested;
    convert::FolderQuantizer(folder(), options).write(quantised);
    TinyOptions stored = qlora(nested);
    stored.model = models::find_model(quantised.string()).config;
    for (const int ranks : {2, 5}) check(stored, quantised, ranks);
  }
}

TEST_F(Ranks, MakeTheSameRandomValues) {
  TinyOptions full{.model = testing::rank_model(), .init_seed = 9};
  full.threads = 1;
  TinyOptions single = qlora(false);
  TinyOptions nested = qlora(true);
  single.init_seed = nested.init_seed = 9;
  for (const TinyOptions& options : {full, single, nested}) {
    TinyRun one(options);
    random_weights(options.model, one.executor());
    expect_no_errors(on_ranks(options, full_shard(3), [&](TinyRun& run, int) {
      random_weights(options.model, run.executor());
      const std::lock_guard lock(mutex_);
      expect_parts_of(one, run, ProgramName::load);
    }));
  }
}

// What loading sends is what docs/many_devices.md says: the scales in fp32 of what is sharded and
// double quantised here, to each other rank once.
TEST_F(Ranks, SendTheScalesOfDoubleQuantisedWeightsAlone) {
  constexpr int kRanks = 3;
  for (const bool nested : {false, true}) {
    TinyOptions options = qlora(nested);
    options.init_seed = 9;
    expect_no_errors(on_ranks(options, full_shard(kRanks), [&](TinyRun& run, int) {
      const comm::Communicator& shards = *run.executor().mesh().shards;
      const int64_t before = shards.bytes_sent();
      random_weights(options.model, run.executor());
      int64_t scales = 0;
      for (const models::Weight& weight : models::weights_of(options.model))
        if (is_stored_as_nf4(run.executor(), weight.name))
          scales += stored_weight(run.executor(), weight.name).absmax.elements();
      EXPECT_GT(scales, 0);
      const int64_t each = nested ? scales * int64_t{sizeof(float)} : 0;
      EXPECT_EQ(shards.bytes_sent() - before, (kRanks - 1) * each);
    }));
  }
}

// The gathers of scales are operations of the program: what ranks send is what those cost, what
// they did is what those say.
TEST_F(Ranks, GatherScalesAsTheProgramSays) {
  constexpr int kRanks = 3;
  for (const bool from_files : {false, true}) {
    TinyOptions options = qlora(true);
    if (!from_files) options.init_seed = 9;
    expect_no_errors(on_ranks(options, full_shard(kRanks), [&](TinyRun& run, int) {
      Executor& executor = run.executor();
      const program::Program& load = *run.job().find(ProgramName::load);
      std::optional<formats::TensorIndex> index;
      Sources sources{.model = &options.model};
      if (from_files) {
        index.emplace(folder());
        sources = sources_of(*index, FileSet::model, "as config.json says", &options.model,
                             ProgramName::load, executor);
      }
      const comm::Communicator& shards = *executor.mesh().shards;
      const int64_t before = shards.bytes_sent();
      std::vector<backends::Trace> traces = perform(ProgramName::load, sources, executor).traces;
      double planned = 0;
      size_t gathers = 0;
      size_t encoded = 0;
      const program::BatchBounds no_bounds;
      for (size_t i = 0; i < traces.size(); ++i) {
        backends::Trace changed = traces[i];
        if (load.operations[i].attributes.is<program::EncodeScales>()) {
          ++encoded;
          changed.bytes -= 1;
          EXPECT_EQ(differences({load, no_bounds}, i, changed).size(), 1U);
          continue;
        }
        if (program::traits_of(load.operations[i]).category != program::Category::collective)
          continue;
        ++gathers;
        planned += program::cost({load, load.operations[i]}, {}).bytes;
        changed.bytes -= 4;
        EXPECT_EQ(differences({load, no_bounds}, i, changed).size(), 1U);
        changed = traces[i];
        changed.channel = program::Channel::compute;
        EXPECT_EQ(differences({load, no_bounds}, i, changed).size(), 1U);
      }
      EXPECT_GT(gathers, 2U);
      EXPECT_GE(encoded, gathers);
      EXPECT_EQ(static_cast<double>(shards.bytes_sent() - before), planned);
      EXPECT_EQ(differences({load, no_bounds}, traces), std::vector<std::string>{});
    }));
  }
}

TEST_F(Ranks, MakeTheSameAdapter) {
  TinyOptions options = lora();
  options.adapter_seed = 3;
  TinyRun one(options);
  initialise_adapter(one.executor());
  expect_no_errors(on_ranks(options, full_shard(4), [&](TinyRun& run, int) {
    initialise_adapter(run.executor());
    const std::lock_guard lock(mutex_);
    expect_parts_of(one, run, ProgramName::load_adapter);
  }));
}

// Pieces of checksums that lie on two ranks are counted by one, who reads them to their ends.
TEST_F(Ranks, ReadNoMoreThanTwiceForADigest) {
  const formats::TensorIndex index(folder());
  const formats::IndexedTensor& tensor = index.at("model.embed_tokens.weight");
  TinyOptions options{.model = testing::rank_model()};
  options.threads = 1;
  TinyRun run(options);
  const ReadReport whole = read_tensors(index, std::array{without_destination(tensor)},
                                        run.executor(), ProgramName::load);
  EXPECT_EQ(whole.bytes_around, 0);
  ReadReport sum;
  constexpr int64_t kPart = 256 * 300;
  for (int64_t first = 0; first < tensor.info->elements(); first += kPart) {
    TensorRead range = without_destination(tensor);
    range.whole = program::Shape{tensor.info->shape[0], tensor.info->shape[1]};
    range.first = first;
    range.destination.shape = {std::min(kPart, tensor.info->elements() - first)};
    const ReadReport part =
        read_tensors(index, std::array{range}, run.executor(), ProgramName::load);
    sum.bytes += part.bytes;
    sum.digest += part.digest;
    sum.bytes_around += part.bytes_around;
  }
  EXPECT_EQ(sum.bytes, tensor.info->bytes());
  EXPECT_EQ(sum.digest, whole.digest);
  EXPECT_GT(sum.bytes_around, 0);
  EXPECT_LE(sum.bytes_around, tensor.info->bytes());
}

}  // namespace
}  // namespace snug::runtime
