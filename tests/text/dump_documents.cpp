// Reads a data file as a run does and says on standard error, as JSON, how long that took and what
// it held, next to what is planned; with OUT the ids of all documents go there, each after its
// length, as integers of 32 bits. For scripts/measure_data.
//   dump_documents FOLDER DATA MAX_LENGTH THREADS [OUT]
#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/seconds_since.h"
#include "text/row/dataset.h"

namespace {

using namespace snug;

int64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} << 10;
}

void write_ids(const text::DocumentStore& documents, const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  std::vector<int32_t> words(static_cast<size_t>(documents.longest()[text::TokenStream::decoder]));
  const auto write = [&](const int32_t* from, int32_t count) {
    out.write(reinterpret_cast<const char*>(from),
              static_cast<std::streamsize>(sizeof(int32_t)) * count);
  };
  for (int64_t i = 0; i < documents.size(); ++i) {
    const int32_t length = documents.length(i);
    const auto ids = std::span(words).first(static_cast<size_t>(length));
    documents.read(i, ids);
    for (int32_t& word : ids) word = text::DocumentStore::id_of(word);
    write(&length, 1);
    write(ids.data(), length);
  }
}

int run(const std::vector<std::string>& arguments) {
  const auto tokenizer = text::Tokenizer::from_folder(arguments[0]);
  text::DatasetOptions options;
  options.max_length = std::stoi(arguments[2]);
  options.threads = std::stoi(arguments[3]);
  options.vocabulary = tokenizer.vocabulary_size();
  options.skips.refuses_any = false;
  // The peak counts anew (proc(5)): opening the tokenizer has one of its own.
  std::ofstream("/proc/self/clear_refs") << "5";
  const int64_t before = peak_bytes();
  const auto begin = std::chrono::steady_clock::now();
  const text::Dataset data = text::load_dataset(arguments[1], tokenizer, options);
  nlohmann::json said;
  said["seconds"] = base::seconds_since(begin);
  said["documents"] = data.documents.size();
  said["tokens"] = data.documents.tokens();
  said["held_bytes"] = peak_bytes() - before;
  said["planned_bytes"] = text::reading_bytes(arguments[1]) + data.documents.host_bytes();
  std::cerr << said.dump() << "\n";
  if (arguments.size() > 4) write_ids(data.documents, arguments[4]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::cerr << "usage: dump_documents FOLDER DATA MAX_LENGTH THREADS [OUT]\n";
    return 2;
  }
  try {
    return run({argv + 1, argv + argc});
  } catch (const base::UserError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
