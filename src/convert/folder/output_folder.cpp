#include "convert/folder/output_folder.h"

#include <system_error>

#include "base/byte_size.h"
#include "base/error.h"
#include "base/file.h"

namespace snug::convert {

namespace fs = std::filesystem;

void check_output(const fs::path& output, int64_t bytes) {
  std::error_code error;
  if (fs::exists(output, error) &&
      !(fs::is_directory(output, error) && fs::is_empty(output, error)))
    base::throw_user_error(
        "output_dir {} exists and is not empty; choose another name, or remove it first",
        output.string());
  const fs::path target = base::followed_link(output);
  fs::path parent = fs::absolute(target, error).lexically_normal().parent_path();
  while (!parent.empty() && !fs::exists(parent, error)) parent = parent.parent_path();
  const fs::space_info space = fs::space(parent, error);
  if (!error && space.available < static_cast<uintmax_t>(bytes))
    base::throw_user_error(
        "output_dir {} takes {}, but the disk has {} left; free {} there, or choose another disk",
        output.string(), base::readable_byte_size(bytes),
        base::readable_byte_size(static_cast<int64_t>(space.available)),
        base::readable_byte_size(bytes - static_cast<int64_t>(space.available)));
}

}  // namespace snug::convert
