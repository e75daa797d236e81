// Parquet files: footer, pages, nested columns.
#include <nlohmann/json.hpp>
#include <sstream>

#include "fuzz_input.h"
#include "text/source/parquet/parquet_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace snug;
  const std::string path = fuzz::fuzzed_file(
      "data.parquet", std::string_view(reinterpret_cast<const char*>(data), size));
  fuzz::read_or_refuse(path, [&] {
    text::ParquetText text(path);
    // A few bytes may say of very many rows that they are null.
    constexpr size_t kMostRead = size_t{256} << 10;
    size_t bytes = 0;
    for (std::string piece; bytes < kMostRead && text.next(piece);) {
      fuzz::require(piece.ends_with('\n'), "a piece has whole rows");
      std::istringstream rows(piece);
      for (std::string row; std::getline(rows, row);) {
        // A text that is no UTF-8 is for the reader of records to judge.
        const auto value = nlohmann::json::parse(
            nlohmann::json(row).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
        fuzz::require(nlohmann::json::accept(value.get<std::string>()), "a row is JSON");
      }
      bytes += piece.size();
    }
  });
  return 0;
}
