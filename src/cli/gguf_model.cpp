#include "cli/gguf_model.h"

#include <fmt/format.h>

#include <cstdint>
#include <system_error>

#include "base/byte_size.h"
#include "base/cache_folder.h"
#include "base/checksum.h"
#include "base/console.h"
#include "base/error.h"
#include "base/file.h"
#include "base/held_folder.h"
#include "base/lower_case.h"
#include "convert/folder/output_folder.h"
#include "convert/gguf/import_gguf.h"
#include "formats/folder/directory_transaction.h"
#include "formats/folder/file_list.h"
#include "runtime/process/process_memory.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;

// Counts the changes of what an import writes: a folder of another count is made anew.
constexpr int kImportVersion = 1;

// Names in the cache: STEM-PATH-STATE, the last two being checksums.
struct CachedName {
  std::string of_path;  // the same whatever the file holds
  std::string whole;
};

CachedName cached_name(const fs::path& file) {
  const auto digits = [](const std::string& text) {
    return base::checksum_text(base::checksum(text));
  };
  const fs::path target = fs::canonical(file);
  CachedName name;
  name.of_path = fmt::format("{}-{}-", file.stem().string(), digits(target.string()));
  name.whole =
      name.of_path + digits(fmt::format("{} {} {}", kImportVersion, fs::file_size(target),
                                        fs::last_write_time(target).time_since_epoch().count()));
  return name;
}

void check_disk(const fs::path& file, const fs::path& folder, int64_t bytes) {
  try {
    convert::check_output(folder, bytes);
  } catch (const base::UserError& error) {
    base::throw_user_error(
        "{}: {}. The folder is what model={} is imported to; with XDG_CACHE_HOME=DIR it is made in "
        "another place, or make it with snug import gguf file={} output_dir=DIR, and give "
        "model=DIR",
        file.string(), error.what(), file.string(), file.string());
  }
}

// Older ones stay: another process may read them, or an adapter name them as its base.
void tell_older(const fs::path& cache, const CachedName& name) {
  for (const fs::directory_entry& entry : base::list_folder(cache)) {
    const std::string its_name = entry.path().filename().string();
    if (its_name.starts_with(name.of_path) && its_name != name.whole &&
        its_name.size() == name.whole.size())
      base::say(
          "{} is of an older state of this file; remove it where nothing needs it, such as "
          "an adapter that was trained on it",
          entry.path().string());
  }
}

// Whether the folder is there as it was made. One that is not is in the way of a new one.
bool is_whole(const fs::path& folder) {
  return fs::is_directory(folder) && !formats::damaged_entry(folder);
}

void remove_damaged(const fs::path& folder) {
  if (!fs::exists(folder)) return;
  base::say("{} is not as it was made ({}), so it is made anew", folder.string(),
            formats::damaged_entry(folder).value_or("no folder"));
  formats::remove_directory(folder);
}

void import_to(const fs::path& folder, const fs::path& file) {
  const convert::GgufImporter importer(file, std::nullopt);
  check_disk(file, folder, importer.plan().result_bytes);
  base::say("{}: imported once to {}, which takes {} at most and is read in its place",
            file.string(), folder.string(), base::readable_byte_size(importer.plan().result_bytes));
  if (const std::string note = importer.note(); !note.empty()) base::say_line(note);
  importer.write(folder);
}

}  // namespace

bool is_gguf_model(const std::string& model) {
  std::error_code error;
  return base::lower_case(model).ends_with(".gguf") && fs::is_regular_file(model, error);
}

fs::path folder_of_gguf(const fs::path& file) {
  try {
    // Adapters name the folder as their base, and are used in other current folders.
    const fs::path cache = fs::absolute(base::cache_folder() / "gguf");
    const CachedName name = cached_name(file);
    const fs::path folder = cache / name.whole;
    if (is_whole(folder)) return folder;
    base::require_writable_folder(cache);
    fs::create_directories(cache);
    {
      const base::HeldFolder held(cache, "another process imports a GGUF file");
      if (is_whole(folder)) return folder;
      remove_damaged(folder);
      import_to(folder, file);
      tell_older(cache, name);
    }
    runtime::release_freed_memory();
    return folder;
  } catch (const fs::filesystem_error& error) {
    throw base::as_user_error(error);
  }
}

}  // namespace snug::cli
