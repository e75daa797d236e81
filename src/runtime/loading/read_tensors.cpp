// Tensors are cut into pieces of at most one slot. Two readers take pieces from one cursor, in the
// order of the reads: while one waits for the disk, the other converts or quantises. Values that
// are rounded before they are quantised are narrowed within their slot. The scales of a double
// quantised weight depend on all of its absmax values: these are gathered in one of two buffers,
// and the reader that finishes the last piece stores them. A device whose memory the host cannot
// access does the quantising itself, and returns all absmax values.
#include "runtime/loading/read_tensors.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "backends/backend.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/finite.h"
#include "formats/folder/checksums.h"
#include "formats/quantization/nf4.h"
#include "plan/job/storage_programs.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/transfer/storage.h"
#include "runtime/conversion/convert.h"
#include "runtime/loading/read_transposed.h"
#include "runtime/loading/stored_weight.h"
#include "runtime/storage/check_finite.h"

namespace snug::runtime {
namespace {

using backends::Buffer;
using formats::IndexedTensor;
using formats::TensorIndex;

// Below this size a second thread costs more than it gains.
constexpr int64_t kParallelBytes = int64_t{8} << 20;

// The bytes that are read and then checked at a time: few enough to stay in a core's own cache
// (half a megabyte or more) in between.
constexpr int64_t kStepBytes = int64_t{128} << 10;

static_assert(plan::kSlotBytes % base::kChecksumPieceBytes == 0);
static_assert(base::kChecksumPieceBytes % kStepBytes == 0);

struct ReadPiece {
  size_t part = 0;
  int64_t first_element = 0;  // index within the destination
  int64_t elements = 0;
};

// The state shared by the two readers: which piece is next, and what remains of each tensor.
class Work {
 public:
  Work(std::span<const TensorRead> reads, Executor& executor, program::ProgramName program)
      : reads_(reads) {
    owner_.reserve(reads.size());
    elements_.reserve(reads.size());
    absmax_.reserve(reads.size());
    size_t gathered = 0;
    for (const TensorRead& part : reads) {
      note_width(part);
      const bool is_new = !part.continues;
      owner_.push_back(is_new ? owner_.size() : owner_.back());
      elements_.push_back(0);
      elements_[owner_.back()] += part.destination.elements();
      absmax_.push_back(is_new && part.stored ? absmax_of(*part.stored, gathered, executor, program)
                                              : nullptr);
    }
    left_ = elements_;
  }

  const TensorRead& part(const ReadPiece& piece) const { return reads_[piece.part]; }
  bool quantizes() const {
    return std::any_of(reads_.begin(), reads_.end(),
                       [](const TensorRead& part) { return part.stored.has_value(); });
  }
  // The buffer in which the absmax values of the tensor's blocks are gathered; null where they are
  // written only to their destination.
  float* absmax(const ReadPiece& piece) const { return absmax_[owner_[piece.part]]; }
  // The elements of all tensors that make up the piece's weight.
  int64_t elements(const ReadPiece& piece) const { return elements_[owner_[piece.part]]; }

  std::optional<ReadPiece> next() {
    std::unique_lock lock(mutex_);
    while (!failure_ && index_ < reads_.size()) {
      const TensorRead& part = reads_[index_];
      // Pieces do not cross slot boundaries, and so no checksum piece is split between them.
      const int64_t slot = plan::kSlotBytes / part.width();
      const int64_t capacity = slot - (part.first + element_) % slot;
      const int64_t left = part.destination.elements() - element_;
      if (left > 0) {
        if (!is_absmax_free(owner_[index_])) {
          // The other reader may have taken the piece meanwhile, so look again.
          ended_.wait(lock);
          continue;
        }
        const ReadPiece piece{index_, element_, std::min(left, capacity)};
        element_ += piece.elements;
        return piece;
      }
      ++index_;
      element_ = 0;
    }
    return std::nullopt;
  }

  // Whether this was the last piece of its weight; the reader that gets true finishes the weight.
  // `bytes` is the number of bytes written to the destination.
  bool ends(const ReadPiece& piece, int64_t bytes) {
    const std::lock_guard lock(mutex_);
    add_bytes(piece, bytes);
    int64_t& left = left_[owner_[piece.part]];
    left -= piece.elements;
    return left == 0;
  }
  void finished(const ReadPiece& piece, int64_t bytes) {
    const std::lock_guard lock(mutex_);
    add_bytes(piece, bytes);
    absmax_[owner_[piece.part]] = nullptr;
    ended_.notify_all();
  }
  void fail(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    ended_.notify_all();
  }
  void add(const ReadReport& report) {
    const std::lock_guard lock(mutex_);
    report_.bytes += report.bytes;
    report_.digest += report.digest;
    report_.bytes_around += report.bytes_around;
  }
  const ReadReport& report() const {
    if (failure_) std::rethrow_exception(failure_);
    return report_;
  }

 private:
  // Records the element width in the file's header, which determines the size of pieces.
  static void note_width(const TensorRead& part) {
    if (part.trace != nullptr)
      part.trace->note_largest<&program::Read::file_width>(part.keeps_bytes ? 0 : part.width());
  }

  void add_bytes(const ReadPiece& piece, int64_t bytes) {
    if (backends::Trace* trace = part(piece).trace; trace != nullptr) trace->bytes += bytes;
  }

  // Where the host cannot access the device's memory, these buffers are the only place where it
  // sees the absmax values.
  static float* absmax_of(const StoredWeight& stored, size_t& gathered, Executor& executor,
                          program::ProgramName program) {
    if (stored.gathered != nullptr) return stored.gathered;
    if (!stored.nested() && executor.backend().host_reaches_device()) return nullptr;
    const auto slot = static_cast<int>(gathered++ % plan::kSlots);
    return executor.tensor(program, program::staging_absmax_name(slot)).as<float>();
  }

  // A buffer is shared by every second tensor. At least one of the two tensors before this one is
  // finished, so at most one reader waits.
  bool is_absmax_free(size_t index) const {
    const float* const wanted = absmax_[index];
    if (wanted == nullptr) return true;
    for (size_t i = 0; i < index; ++i)
      if (absmax_[i] == wanted) return false;
    return true;
  }

  std::span<const TensorRead> reads_;
  // A weight that several reads make up is that of the first of them, which the lists below name.
  std::vector<size_t> owner_;      // of each read
  std::vector<int64_t> elements_;  // of each weight
  std::vector<int64_t> left_;      // how many of them remain
  std::vector<float*> absmax_;     // its gathering buffer, until it is finished
  std::mutex mutex_;
  std::condition_variable ended_;
  size_t index_ = 0;
  int64_t element_ = 0;
  std::exception_ptr failure_;
  ReadReport report_;
};

// Narrows values in place, through a chunk that stays in the cache.
void round_in_place(std::byte* values, base::DType from, base::DType to, int64_t elements) {
  constexpr int64_t kChunkElements = 1024;
  const int64_t from_width = base::size_of(from);
  const int64_t width = base::size_of(to);
  SNUG_CHECK(width < from_width, "{} to {} in place", base::name_of(from), base::name_of(to));
  alignas(64) std::array<std::byte, kChunkElements * sizeof(float)> chunk;
  for (int64_t first = 0; first < elements; first += kChunkElements) {
    const int64_t count = std::min(kChunkElements, elements - first);
    convert(from, values + first * from_width, to, chunk.data(), count);
    std::memcpy(values + first * width, chunk.data(), static_cast<size_t>(count * width));
  }
}

// The state of one reading thread.
struct Reader {
  Reader(Executor& executor, program::ProgramName program, int number, bool quantizes)
      : slot(executor.tensor(program, program::staging_slot_name(number)).data),
        window(executor, program, number) {
    if (quantizes) quantizer.emplace(executor, program, number);
  }
  std::byte* slot;
  HostWindow window;
  std::optional<WeightQuantizer> quantizer;
  base::ChecksumStream checksum;
  ReadReport report;  // what this thread has read
};

void check_checksum(const TensorIndex& index, const TensorRead& part, int64_t first_byte,
                    uint64_t checksum) {
  const auto piece = static_cast<size_t>(first_byte / base::kChecksumPieceBytes);
  if (!part.checksums || (*part.checksums)[piece] == checksum) return;
  throw base::DamagedFile(fmt::format(
      "{}: tensor '{}' does not hold what was written from its byte {} on, so the file is damaged; "
      "use an earlier or another copy",
      index.path_of(*part.source).string(), part.source->info->name, first_byte));
}

// Whether the digest counts the checksum piece that begins there.
bool is_counted(const TensorRead& part, int64_t piece_first) {
  return part.is_counted && piece_first >= part.first_byte();
}

bool has_checksum(const TensorRead& part, int64_t piece_first) {
  return part.checksums.has_value() || is_counted(part, piece_first);
}

int64_t piece_begin(int64_t byte) { return byte - byte % base::kChecksumPieceBytes; }

// Adds bytes of a tensor, from `first` on. They must lie in one checksum piece and be added in
// order.
void add_to_checksum(const TensorIndex& index, const TensorRead& part, int64_t first,
                     std::span<const std::byte> bytes, Reader& reader) {
  const int64_t piece_first = piece_begin(first);
  if (!has_checksum(part, piece_first)) return;
  reader.checksum.add(bytes.data(), std::ssize(bytes));
  const int64_t done = first + std::ssize(bytes);
  const formats::TensorInfo& info = *part.source->info;
  if (done % base::kChecksumPieceBytes != 0 && done != info.bytes()) return;
  const uint64_t checksum = reader.checksum.take();
  check_checksum(index, part, piece_first, checksum);
  if (is_counted(part, piece_first))
    reader.report.digest += digest_of(info.name, piece_first, checksum);
}

// Calls f(first, bytes) for a range of bytes, step by step.
template <typename F>
void for_each_step(int64_t first, int64_t end, F&& f) {
  int64_t bytes = 0;
  for (; first < end; first += bytes) {
    bytes = std::min(end - first, kStepBytes - first % kStepBytes);
    f(first, bytes);
  }
}

// Reads bytes of a tensor, or of its transpose, from `first` on.
void read_source(const TensorIndex& index, const TensorRead& part, int64_t first, int64_t bytes,
                 std::byte* to) {
  if (!part.transposed) return index.read_range(*part.source, first, bytes, to);
  const int64_t width = part.width();
  read_transposed(index, *part.source, first / width, bytes / width, to);
}

// Reads a piece without conversion. A transposed piece is read in one go, since each row of the
// file contributes to every step.
void read_bytes(const TensorIndex& index, const TensorRead& part, const ReadPiece& piece,
                Reader& reader, std::byte* to) {
  const IndexedTensor& source = *part.source;
  const base::DType dtype = *source.info->dtype;
  const int64_t width = part.width();
  const int64_t begin = (part.first + piece.first_element) * width;
  const int64_t end = begin + piece.elements * width;
  if (part.transposed) read_source(index, part, begin, end - begin, to);
  for_each_step(begin, end, [&](int64_t first, int64_t bytes) {
    std::byte* const step = to + (first - begin);
    if (!part.transposed) index.read_range(source, first, bytes, step);
    if (part.holds_values && !part.stored)
      check_finite(index, source, {dtype, step, first / width, bytes / width});
    add_to_checksum(index, part, first, {step, static_cast<size_t>(bytes)}, reader);
  });
  reader.report.bytes += end - begin;
}

// Reads bytes outside the range through the slot and adds them to the checksum.
void read_around(const TensorIndex& index, const TensorRead& part, int64_t begin, int64_t end,
                 Reader& reader) {
  for_each_step(begin, end, [&](int64_t first, int64_t bytes) {
    read_source(index, part, first, bytes, reader.slot);
    add_to_checksum(index, part, first, {reader.slot, static_cast<size_t>(bytes)}, reader);
  });
  reader.report.bytes_around += end - begin;
}

// Reads the start of the checksum piece that lies before the range, which is needed to verify it.
void read_before(const TensorIndex& index, const TensorRead& part, const ReadPiece& piece,
                 Reader& reader) {
  const int64_t first = part.first_byte();
  if (piece.first_element == 0 && part.checksums)
    read_around(index, part, piece_begin(first), first, reader);
}

// Reads the end of the checksum piece that lies after the range, once the slot is free.
void read_after(const TensorIndex& index, const TensorRead& part, const ReadPiece& piece,
                Reader& reader) {
  if (piece.first_element + piece.elements != part.destination.elements()) return;
  const int64_t end = part.end_byte();
  const int64_t piece_first = piece_begin(end);
  if (piece_first == end || !has_checksum(part, piece_first)) return;
  const int64_t piece_end = piece_first + base::kChecksumPieceBytes;
  read_around(index, part, end, std::min(piece_end, part.source->info->bytes()), reader);
}

// Rounds a slot's values and quantises them to their destination; returns the absmax of their
// blocks.
std::span<const float> quantize_piece(const TensorRead& part, const ReadPiece& piece, Work& work,
                                      Reader& reader) {
  const base::DType from = *part.source->info->dtype;
  const base::DType rounded = quantised_from(from, part.stored->compute);
  if (rounded != from) round_in_place(reader.slot, from, rounded, piece.elements);
  return reader.quantizer->quantize_slot(rounded,
                                         {part.stored_first + piece.first_element, piece.elements},
                                         *part.stored, work.absmax(piece));
}

// Throws the reason why quantising a piece gave scales that are not finite: either the values in
// the file or their rounding.
[[noreturn]] void explain(const TensorIndex& index, const ReadPiece& piece, const TensorRead& part,
                          std::span<const float> absmax, Reader& reader) {
  const IndexedTensor& source = *part.source;
  const base::DType dtype = *source.info->dtype;
  const int64_t width = part.width();
  const int64_t first = part.first + piece.first_element;
  read_source(index, part, first * width, piece.elements * width, reader.slot);
  check_finite(index, source, {dtype, reader.slot, first, piece.elements, part.transposed});
  check_rounded_blocks(index, source, first / formats::kNf4BlockSize, absmax, part.transposed);
  SNUG_CHECK(false, "the scales of {} were finite", source.info->name);
}

// Reads a piece that is quantised while loading. The absmax of each block tells whether all its
// values are finite.
void read_to_quantize(const TensorIndex& index, const ReadPiece& piece, Work& work,
                      Reader& reader) {
  const TensorRead& part = work.part(piece);
  read_bytes(index, part, piece, reader, reader.slot);
  const std::span<const float> absmax = quantize_piece(part, piece, work, reader);
  if (base::first_not_finite(base::DType::f32, absmax.data(), std::ssize(absmax)))
    explain(index, piece, part, absmax, reader);
  const int64_t scales = part.stored->nested() ? 0 : std::ssize(absmax) * int64_t{sizeof(float)};
  if (!work.ends(piece, formats::nf4_code_bytes(piece.elements) + scales)) return;
  work.finished(piece, store_scales(work.absmax(piece), formats::nf4_blocks(work.elements(piece)),
                                    *part.stored, reader.window));
}

void read_to_place(const TensorIndex& index, const ReadPiece& piece, Work& work, Reader& reader) {
  const TensorRead& part = work.part(piece);
  if (part.stored) return read_to_quantize(index, piece, work, reader);
  const Buffer& destination = part.destination;
  if (destination.data == nullptr) return read_bytes(index, part, piece, reader, reader.slot);
  const base::DType from = *part.source->info->dtype;
  const int64_t width = base::size_of(destination.dtype);
  const bool straight = from == destination.dtype;
  std::byte* const to =
      reader.window.open(destination.data + piece.first_element * width, piece.elements * width);
  read_bytes(index, part, piece, reader, straight ? to : reader.slot);
  if (!straight) {
    convert(from, reader.slot, destination.dtype, to, piece.elements);
    if (width < base::size_of(from))
      check_rounded(index, *part.source,
                    {destination.dtype, to, part.first + piece.first_element, piece.elements});
  }
  reader.window.close();
  work.ends(piece, piece.elements * width);
}

void read_piece(const TensorIndex& index, const ReadPiece& piece, Work& work, Reader& reader) {
  const TensorRead& part = work.part(piece);
  read_before(index, part, piece, reader);
  read_to_place(index, piece, work, reader);
  read_after(index, part, piece, reader);
}

void read_pieces(const TensorIndex& index, Work& work, Executor& executor,
                 program::ProgramName program, int number) {
  try {
    Reader reader(executor, program, number, work.quantizes());
    while (const auto piece = work.next()) read_piece(index, *piece, work, reader);
    work.add(reader.report);
  } catch (...) {
    work.fail(std::current_exception());
  }
}

}  // namespace

ReadReport read_tensors(const TensorIndex& index, std::span<const TensorRead> reads,
                        Executor& executor, program::ProgramName program) {
  int64_t bytes = 0;
  for (const TensorRead& part : reads) bytes += part.end_byte() - part.first_byte();
  executor.backend().synchronise();
  Work work(reads, executor, program);
  if (bytes < kParallelBytes) {
    read_pieces(index, work, executor, program, 0);
  } else {
    std::thread other([&] { read_pieces(index, work, executor, program, 1); });
    read_pieces(index, work, executor, program, 0);
    other.join();
  }
  return work.report();
}

}  // namespace snug::runtime
