#include "runtime/save_tensors.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "base/finite.h"
#include "formats/tensor_index.h"
#include "plan/storage_programs.h"
#include "program/tensor_names.h"
#include "runtime/check_finite.h"
#include "runtime/file_shape.h"
#include "runtime/host_window.h"
#include "runtime/trace_check.h"

namespace snug::runtime {
namespace {

namespace fs = std::filesystem;

static_assert(plan::kStageBytes % base::kChecksumPieceBytes == 0);

[[noreturn]] void fail_read_back(const formats::TensorIndex& index,
                                 const formats::IndexedTensor& tensor) {
  base::throw_user_error(
      "{}: tensor '{}' does not read back as it was written; nothing was kept of this save. The "
      "disk or its file system is faulty, write to another one",
      index.path_of(tensor).string(), tensor.info->name);
}

void compare(const formats::TensorIndex& index, const SavedTensor& tensor, std::byte* slot,
             HostWindow& window) {
  const formats::IndexedTensor& stored = index.at(tensor.name);
  const int64_t bytes = tensor.buffer.bytes();
  if (stored.info->bytes() != bytes || stored.info->dtype != tensor.buffer.dtype ||
      stored.info->shape != dims_of(tensor.buffer.shape))
    fail_read_back(index, stored);
  for (int64_t done = 0; done < bytes; done += plan::kSlotBytes) {
    const int64_t piece = std::min(bytes - done, plan::kSlotBytes);
    index.read_range(stored, done, piece, slot);
    const std::byte* const own = window.read(tensor.buffer.data + done, piece);
    if (std::memcmp(slot, own, static_cast<size_t>(piece)) != 0) fail_read_back(index, stored);
  }
}

// Calls f(buffer, first) over a contiguous tensor in flat pieces of a checksum each that the host
// may read, `first` the element each begins with.
template <typename F>
void read_pieces(const backends::Buffer& tensor, HostWindow& window, F&& f) {
  const int64_t width = base::size_of(tensor.dtype);
  const int64_t total = tensor.bytes();
  int64_t open_bytes = 0;
  for (int64_t begin = 0; begin < total; begin += open_bytes) {
    open_bytes = std::min(window.capacity_bytes(), total - begin);
    const std::byte* const bytes = window.read(tensor.data + begin, open_bytes);
    for (int64_t done = 0; done < open_bytes; done += base::kChecksumPieceBytes) {
      backends::Buffer piece = tensor;
      piece.shape = {std::min(base::kChecksumPieceBytes, open_bytes - done) / width};
      piece.data = const_cast<std::byte*>(bytes + done);
      f(std::as_const(piece), (begin + done) / width);
    }
  }
}

void check_finite(const SavedTensor& tensor, const backends::Buffer& values, int64_t first) {
  const auto found = base::first_not_finite(values.dtype, values.data, values.elements());
  if (!found) return;
  base::throw_user_error(
      "tensor '{}' is not finite at {}, so nothing was saved and what was saved before stays; "
      "lower "
      "learning_rate or lengthen the warm-up, and go on from the last checkpoint with "
      "resume_from_checkpoint=auto",
      tensor.name, position_text(dims_of(tensor.buffer.shape), first + *found));
}

}  // namespace

Saved saved_by(program::ProgramName program, FileSet files, const Executor& executor) {
  const program::Program& operations = *executor.job().find(program);
  Saved saved{.program = program, .tensors = {}, .traces = {}};
  for (const program::Operation& operation : operations.operations) {
    const program::TensorId id = id_of(operation, program::Write::kTensor);
    saved.tensors.push_back(
        {name_in(files, operations.tensor(id).name), executor.tensor(program, id)});
    backends::Trace trace;
    trace.kind = operation.kind();
    trace.channel = program::Channel::storage;
    saved.traces.push_back(std::move(trace));
  }
  return saved;
}

formats::TensorChecksums write_tensors(const fs::path& folder, const std::string& stem,
                                       Saved& saved, Executor& executor, int64_t max_shard_bytes) {
  std::vector<formats::TensorSpec> specs;
  for (const SavedTensor& tensor : saved.tensors)
    specs.push_back({tensor.name, tensor.buffer.dtype, dims_of(tensor.buffer.shape)});
  formats::ModelWriter writer(folder, specs, max_shard_bytes, stem);
  HostWindow window(executor, saved.program, 0);
  formats::TensorChecksums checksums;
  for (size_t i = 0; i < saved.tensors.size(); ++i) {
    const SavedTensor& tensor = saved.tensors[i];
    backends::Trace& trace = saved.traces[i];
    ++trace.runs;
    std::vector<uint64_t>& pieces = checksums[tensor.name];
    pieces.reserve(static_cast<size_t>(base::checksum_pieces(tensor.buffer.bytes())));
    read_pieces(tensor.buffer, window, [&](const backends::Buffer& piece, int64_t first) {
      check_finite(tensor, piece, first);
      pieces.push_back(base::checksum(piece.data, piece.bytes()));
      writer.write(tensor.name, piece.data, piece.bytes());
      trace.bytes += piece.bytes();
    });
  }
  writer.finish();
  check_performed(*executor.job().find(saved.program), saved.traces);
  executor.note_performed(saved.program);
  return checksums;
}

void read_back(const fs::path& folder, const std::string& stem, const Saved& saved,
               Executor& executor) {
  const formats::TensorIndex index(folder, stem);
  std::byte* slot = executor.tensor(saved.program, program::staging_slot_name(0)).data;
  HostWindow window(executor, saved.program, 0);
  for (const SavedTensor& tensor : saved.tensors) compare(index, tensor, slot, window);
}

}  // namespace snug::runtime
