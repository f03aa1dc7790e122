// Labels of threads, published for whoever profiles this process: a record of OpenTelemetry's thread context
// (OTEP 4947) for each thread, and a process context (OTEP 4719) that says what its keys mean. The kernel
// reads a record in the interrupt that takes a sample of its thread, so that it needs no lock, only to be
// valid when it is.

#include "inject/thread_labels.hpp"

#include <fcntl.h>
#include <linux/memfd.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "inject/lock.hpp"
#include "inject/sampler.hpp"
#include "inject/session.hpp"
#include "inject/system_calls.hpp"
#include "inject/thread_state.hpp"

__thread void* ddprof_thread_ctx_v1 __attribute__((tls_model("initial-exec")));

namespace inject {

namespace {

constexpr size_t kPage = 4096;
constexpr uint32_t kMostKeys = 64;
constexpr size_t kLongestKey = 64;
constexpr size_t kLongestValue = 255;
constexpr size_t kAttributeBytes = 612;

struct Record {
  uint8_t trace_id[16], span_id[8];
  uint8_t is_valid, flags;
  uint16_t size;
  uint8_t attributes[kAttributeBytes];
};
static_assert(offsetof(Record, attributes) == 28);

struct Key {
  uint8_t length;
  char text[kLongestKey];
};

// Keys are only ever added, and are read without the lock.
Key keys[kMostKeys];
uint32_t key_count;

size_t length_of(const char* text) {
  size_t length = 0;
  while (text[length] != '\0') ++length;
  return length;
}

// The number of the key, or kMostKeys.
uint32_t find_key(const char* text, size_t length) {
  const uint32_t count = __atomic_load_n(&key_count, __ATOMIC_ACQUIRE);
  for (uint32_t number = 0; number < count; ++number) {
    const Key& key = keys[number];
    size_t same = 0;
    while (same < length && same < key.length && key.text[same] == text[same]) ++same;
    if (same == length && same == key.length) return number;
  }
  return kMostKeys;
}

// --- The process context ---

struct Head {
  char signature[8];
  uint32_t version, payload_size;
  uint64_t published_at;
  const void* payload;
};

Head* head;
uint32_t publisher;  // the process that has published; a child that was forked has to do so itself
uint8_t payload[kMostKeys * (kLongestKey + 4) + 256];

// Protobuf: fields that hold bytes.
uint8_t* put_head(uint8_t* to, uint32_t field, size_t size) {
  *to++ = static_cast<uint8_t>(field << 3U | 2U);
  for (; size >= 128; size >>= 7U) *to++ = static_cast<uint8_t>(size | 128U);
  *to++ = static_cast<uint8_t>(size);
  return to;
}
size_t head_size(size_t size) { return size < 128 ? 2 : size < 16384 ? 3 : 4; }

uint8_t* put_text(uint8_t* to, uint32_t field, const char* text, size_t length) {
  to = put_head(to, field, length);
  for (size_t i = 0; i < length; ++i) *to++ = static_cast<uint8_t>(text[i]);
  return to;
}

// The attribute and the beginning of its value, of which `value` bytes follow.
uint8_t* put_attribute(uint8_t* to, const char* name, size_t value) {
  const size_t length = length_of(name);
  to = put_head(to, 2, head_size(length) + length + head_size(value) + value);
  return put_head(put_text(to, 1, name, length), 2, value);
}

size_t make_payload() {
  constexpr const char* kSchema = "ddprof_v1";
  const size_t schema = length_of(kSchema);
  uint8_t* to = put_attribute(payload, "threadlocal.schema_version", head_size(schema) + schema);
  to = put_text(to, 1, kSchema, schema);
  size_t array = 0;
  for (uint32_t i = 0; i < key_count; ++i) array += 4 + keys[i].length;  // a key in a value in the array
  to = put_attribute(to, "threadlocal.attribute_key_map", head_size(array) + array);
  to = put_head(to, 5, array);
  for (uint32_t i = 0; i < key_count; ++i) {
    to = put_head(to, 1, size_t{2} + keys[i].length);
    to = put_text(to, 1, keys[i].text, keys[i].length);
  }
  return static_cast<size_t>(to - payload);
}

// Whether somebody publishes one already: there can be one alone.
bool is_published_by_another() {
  const long maps = system_call(SYS_openat, AT_FDCWD, to_argument("/proc/self/maps"), O_RDONLY | O_CLOEXEC);
  if (has_failed(maps)) return false;
  constexpr const char* kName = "OTEL_CTX";
  bool is_found = false;
  size_t same = 0;
  static char text[kPage];
  for (long size = 0;
       !is_found && (size = system_call(SYS_read, maps, to_argument(text), sizeof text)) > 0;) {
    for (long i = 0; i < size && !is_found; ++i) {
      same = text[i] == kName[same] ? same + 1 : text[i] == kName[0] ? 1 : 0;
      is_found = kName[same] == '\0';
    }
  }
  system_call(SYS_close, maps);
  return is_found;
}

bool map_head() {
  const long fd = system_call(SYS_memfd_create, to_argument("OTEL_CTX"), MFD_CLOEXEC);
  if (has_failed(fd)) return false;
  system_call(SYS_ftruncate, fd, sizeof(Head));
  void* memory = map_memory(kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE, static_cast<int>(fd), 0);
  system_call(SYS_close, fd);
  if (memory == nullptr) return false;
  system_call(SYS_madvise, to_argument(memory), kPage, MADV_DONTFORK);
  head = static_cast<Head*>(memory);
  head->version = 2;
  head->payload = payload;
  for (size_t i = 0; i < sizeof head->signature; ++i) head->signature[i] = "OTEL_CTX"[i];
  return true;
}

// With all keys that there are.
bool publish(uint32_t own) {
  if (publisher != own) {
    head = nullptr;
    static uint32_t refused;  // the process that has been refused: to look again would take long
    if (refused == own || is_published_by_another()) {
      refused = own;
      set_last_error("labels: another library publishes what the threads of this program do");
      return false;
    }
    if (!map_head()) {
      set_last_error("labels: no memory");
      return false;
    }
  }
  __atomic_store_n(&head->published_at, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&head->payload_size, static_cast<uint32_t>(make_payload()), __ATOMIC_SEQ_CST);
  __atomic_store_n(&head->published_at, monotonic_ns(), __ATOMIC_SEQ_CST);
  __atomic_store_n(&publisher, own, __ATOMIC_RELEASE);
  return true;
}

// --- Records of threads ---

// Those of threads that have ended are used again: nothing tells of their end.
struct Chunk {
  static constexpr size_t kRecords = 24;

  Chunk* next;
  uint32_t owners[kRecords];  // thread ids; 0: free
  Record records[kRecords];
};

Chunk* chunks;
uint32_t chunks_owner;  // the process; a child that was forked leaves its thread the one it has

bool has_ended(uint32_t own, uint32_t thread) {
  constexpr long kNoSuchThread = -3;  // ESRCH
  return system_call(SYS_tgkill, own, thread, 0) == kNoSuchThread;
}

Record* find_record(uint32_t own) {
  const auto thread = static_cast<uint32_t>(system_call(SYS_gettid));
  if (chunks_owner != own) chunks = nullptr;
  chunks_owner = own;
  for (int may_take = 0; may_take < 2; ++may_take) {
    for (Chunk* chunk = chunks; chunk != nullptr; chunk = chunk->next) {
      for (size_t i = 0; i < Chunk::kRecords; ++i) {
        uint32_t& owner = chunk->owners[i];
        if (owner != 0 && owner != thread && (may_take == 0 || !has_ended(own, owner))) continue;
        owner = thread;
        chunk->records[i].is_valid = 0;
        chunk->records[i].size = 0;
        return &chunk->records[i];
      }
    }
  }
  void* memory = map_memory(sizeof(Chunk), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == nullptr) return nullptr;
  auto* chunk = static_cast<Chunk*>(memory);
  chunk->next = chunks;
  chunks = chunk;
  chunk->owners[0] = thread;
  return &chunk->records[0];
}

// What is published of a thread changes while it is not valid.
void barrier() { asm volatile("" ::: "memory"); }

// Where the attribute of that key begins; the end: there is none.
uint32_t place_of(const Record& record, uint32_t key) {
  uint32_t place = 0;
  while (place < record.size && record.attributes[place] != key) place += 2U + record.attributes[place + 1];
  return place;
}

void remove(Record& record, uint32_t place) {
  const uint32_t bytes = 2U + record.attributes[place + 1];
  for (uint32_t i = place; i + bytes < record.size; ++i) record.attributes[i] = record.attributes[i + bytes];
  record.size = static_cast<uint16_t>(record.size - bytes);
}

void append(Record& record, uint32_t key, const char* value, size_t length) {
  uint8_t* to = record.attributes + record.size;
  *to++ = static_cast<uint8_t>(key);
  *to++ = static_cast<uint8_t>(length);
  for (size_t i = 0; i < length; ++i) *to++ = static_cast<uint8_t>(value[i]);
  record.size = static_cast<uint16_t>(record.size + 2 + length);
}

uint32_t labels_holder;

// The key's number, with a record for this thread, in a process that publishes both.
uint32_t prepare(const char* key, size_t length, uint32_t own) {
  const Lock lock(labels_holder);
  uint32_t number = find_key(key, length);
  const bool is_new = number == kMostKeys;
  if (is_new) {
    if (key_count == kMostKeys) {
      set_last_error("labels: too many different keys: ", key);
      return kMostKeys;
    }
    number = key_count;
    for (size_t i = 0; i < length; ++i) keys[number].text[i] = key[i];
    keys[number].length = static_cast<uint8_t>(length);
    __atomic_store_n(&key_count, number + 1, __ATOMIC_RELEASE);
  }
  if ((is_new || publisher != own) && !publish(own)) return kMostKeys;
  if (ddprof_thread_ctx_v1 == nullptr) ddprof_thread_ctx_v1 = find_record(own);
  if (ddprof_thread_ctx_v1 != nullptr) return number;
  set_last_error("labels: no memory");
  return kMostKeys;
}

}  // namespace

bool set_label(const char* key, const char* value) {
  const size_t key_length = key != nullptr ? length_of(key) : 0;
  const size_t length = length_of(value);
  if (key_length == 0 || key_length > kLongestKey || length > kLongestValue) {
    set_last_error("labels: a key has 1 to 64 bytes and a value at most 255");
    return false;
  }
  uint32_t number = find_key(key, key_length);
  if (length == 0 && (number == kMostKeys || ddprof_thread_ctx_v1 == nullptr)) return true;
  const auto own = static_cast<uint32_t>(system_call(SYS_getpid));
  if (number == kMostKeys || ddprof_thread_ctx_v1 == nullptr ||
      __atomic_load_n(&publisher, __ATOMIC_ACQUIRE) != own)
    number = prepare(key, key_length, own);
  if (number == kMostKeys) return false;
  auto& record = *static_cast<Record*>(ddprof_thread_ctx_v1);
  const uint32_t place = place_of(record, number);
  const size_t old = place < record.size ? 2U + record.attributes[place + 1] : 0;
  if (length > 0 && record.size - old + 2 + length > kAttributeBytes) {
    set_last_error("labels: no room for ", key);
    return false;
  }
  *static_cast<volatile uint8_t*>(&record.is_valid) = 0;
  barrier();
  if (old > 0) remove(record, place);
  if (length > 0) append(record, number, value, length);
  barrier();
  *static_cast<volatile uint8_t*>(&record.is_valid) = record.size > 0 ? 1 : 0;
  return true;
}

void clear_labels() {
  if (ddprof_thread_ctx_v1 == nullptr) return;
  auto& record = *static_cast<Record*>(ddprof_thread_ctx_v1);
  *static_cast<volatile uint8_t*>(&record.is_valid) = 0;
  barrier();
  record.size = 0;
}

}  // namespace inject
