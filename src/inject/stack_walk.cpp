#include "inject/stack_walk.hpp"

#include <sys/mman.h>

#include "inject/system_calls.hpp"

namespace inject {

namespace {

constexpr uint16_t kGap = 0;  // RuleIndex::gap

// A rule for a pc that was looked up before, in one word: pc (47 bits), version of the module map (3), rule
// (14). A word is read and written whole, so threads need no lock.
constexpr size_t kCachedRules = 8192;
uint64_t cached_rules[kCachedRules];

size_t cache_place(uint64_t pc, uint32_t version) {
  return ((pc ^ (static_cast<uint64_t>(version) << 40U)) * 0x9e3779b97f4a7c15U) >> 51U;
}
uint64_t cache_key(uint64_t pc, uint32_t version) {
  return pc << 17U | static_cast<uint64_t>(version & 7U) << 14U;
}

}  // namespace

bool CodeTables::map_tables(int fd) {
  constexpr uint64_t kFirstBytes = uint64_t{4} << 20U;
  const uint64_t bytes = has_tables() ? bytes_ : kFirstBytes;
  void* memory = has_tables()
                     ? map_memory_over(const_cast<char*>(tables_), bytes, PROT_READ, MAP_SHARED, fd, 0)
                     : map_memory(bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (memory == nullptr) return false;
  const auto* tables = static_cast<const ddprof_heap_tables*>(memory);
  const bool is_good = tables->magic == DDPROF_HEAP_MAGIC && tables->version == DDPROF_HEAP_VERSION;
  if (is_good) {
    use(memory, bytes);
  } else if (has_tables()) {
    empty();
  } else {
    unmap_memory(memory, bytes);
  }
  return is_good;
}

void CodeTables::empty() {
  map_memory_over(const_cast<char*>(tables_), bytes_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1, 0);
  for (uint64_t& rule : cached_rules) __atomic_store_n(&rule, 0, __ATOMIC_RELAXED);
}

// Of a shared mapping mremap() makes a second one, of another size, when the first is said to have none.
void CodeTables::map_more() {
  static uint32_t is_mapping;
  uint32_t expected = 0;
  if (!__atomic_compare_exchange_n(&is_mapping, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
    return;
  uint64_t bytes = bytes_;
  const uint64_t used = __atomic_load_n(&header().used, __ATOMIC_RELAXED);
  while (bytes < used && bytes < DDPROF_HEAP_TABLES_BYTES) bytes *= 2;
  const long result = bytes == bytes_ ? -1
                                      : system_call(SYS_mremap, to_argument(tables_), 0,
                                                    static_cast<long>(bytes), MREMAP_MAYMOVE);
  // A failure is final: the address space is limited. What lies further on is finished by the profiler.
  if (!has_failed(result)) use(reinterpret_cast<const void*>(result), bytes);
  if (!has_failed(result)) __atomic_store_n(&is_mapping, 0, __ATOMIC_RELEASE);
}

const ddprof_heap_module* CodeTables::find_module(uint64_t pc) const {
  const uint32_t which = __atomic_load_n(&slot_->control.map, __ATOMIC_ACQUIRE) & 1U;
  const ddprof_heap_map& map = slot_->maps[which];
  uint32_t count = __atomic_load_n(&map.count, __ATOMIC_RELAXED);
  if (count > DDPROF_HEAP_MODULES) return nullptr;
  const ddprof_heap_module* first = map.modules;
  while (count > 0) {  // the first whose end is behind pc
    const uint32_t half = count / 2;
    if (first[half].end <= pc) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  if (first == map.modules + DDPROF_HEAP_MODULES || pc < first->start || pc >= first->end) return nullptr;
  return first;
}

uint16_t CodeTables::find_in_table(uint64_t offset, uint64_t elf_address) const {
  const auto* table = at<ddprof_heap_table>(offset);
  if (offset == 0 || table == nullptr) return kGap;
  const uint64_t place = elf_address - table->base;
  const uint32_t shift = table->page_shift;
  if (place >= table->size || shift > 16) return kGap;
  const uint64_t page = place >> shift;
  const uint32_t low = static_cast<uint32_t>(place & ((uint64_t{1} << shift) - 1));
  if (page >= table->page_count) return kGap;
  const auto* pages = at<uint32_t>(table->pages + page * sizeof(uint32_t), 2);
  if (pages == nullptr || pages[0] >= pages[1]) return kGap;
  const uint32_t first = pages[0];
  uint32_t count = pages[1] - first;
  const auto* row = at<ddprof_unwind_row>(table->rows + uint64_t{first} * sizeof(ddprof_unwind_row), count);
  if (row == nullptr) return kGap;
  while (count > 1) {
    const uint32_t half = count / 2;
    row += row[half].pc_low <= low ? half : 0;
    count -= half;
  }
  return row->rule;
}

bool CodeTables::find_rule(uint64_t pc, ddprof_unwind_rule& rule) const {
  if (slot_ == nullptr) return false;
  const uint32_t version = __atomic_load_n(&slot_->control.map, __ATOMIC_ACQUIRE);
  uint64_t& cached = cached_rules[cache_place(pc, version)];
  const uint64_t key = cache_key(pc, version);
  const uint64_t word = __atomic_load_n(&cached, __ATOMIC_RELAXED);
  constexpr uint64_t kRuleBits = DDPROF_MAX_UNWIND_RULES - 1;
  uint16_t index = 0;
  if ((word & ~kRuleBits) == key && word != 0) {
    index = static_cast<uint16_t>(word & kRuleBits);
  } else {
    const ddprof_heap_module* module = find_module(pc);
    if (module == nullptr) return false;
    index = find_in_table(module->table, pc - module->bias);
    if (index == kGap) index = find_in_table(module->patch, pc - module->bias);
    if (index >= DDPROF_MAX_UNWIND_RULES) return false;
    __atomic_store_n(&cached, key | index, __ATOMIC_RELAXED);
  }
  rule = header().rules[index];
  return true;
}

bool CodeTables::is_behind_call(uint64_t pc, [[maybe_unused]] bool may_ask) const {
#if defined(__x86_64__)
  const ddprof_heap_module* module = find_module(pc - 1);
  constexpr uint64_t kLongestCall = 7;
  if (module == nullptr || module->table == 0 || pc < module->start + kLongestCall) return false;
  // The map may be older than what is mapped: the module can have been unloaded since.
  if (!may_ask || !is_readable(pc - kLongestCall) || !is_readable(pc - 1)) return false;
  const auto* code = reinterpret_cast<const uint8_t*>(pc);
  if (code[-5] == 0xe8) return true;  // to an address
  // Through a register or memory: ff /2 with 2 to 7 bytes.
  for (int length = 2; length <= 7; ++length)
    if (code[-length] == 0xff && (code[-length + 1] & 0x38U) == 0x10) return true;
  return false;
#else
  const ddprof_heap_module* module = find_module(pc - 1);
  return module != nullptr && module->table != 0;
#endif
}

namespace {

class Walk {
 public:
  Walk(const WalkStart& start, const CodeTables& code, StackMemory& memory, uint64_t* frames, size_t most)
      : code_(code),
        memory_(memory),
        pc_(start.pc),
        sp_(start.sp),
        fp_(start.fp),
        frames_(frames),
        most_(most) {}

  WalkResult run() {
    add_frame();
    while (step()) {
      if (count_ == most_) {
        end_ = WalkEnd::too_deep;
        break;
      }
      add_frame();
    }
    return {end_, static_cast<uint32_t>(count_), hash_};
  }

 private:
  static constexpr uint32_t kMostMoves = 4;

  void add_frame() {
    frames_[count_++] = pc_;
    hash_ = ddprof_heap_hash(hash_, pc_);
  }

  bool stop(WalkEnd end) {
    end_ = end;
    return false;
  }

  // One frame outward. False: the walk is over.
  bool step() {
    ddprof_unwind_rule rule{};
    if (!code_.find_rule(is_exact_ ? pc_ : pc_ - 1, rule)) return stop(WalkEnd::no_rule);
    switch (rule.cfa) {
      case DDPROF_CFA_END:
      case DDPROF_CFA_GO_SWITCH:
        return stop(WalkEnd::complete);
      case DDPROF_CFA_SIGNAL_FRAME:
        return step_over_signal();
      case DDPROF_CFA_GAP:
        return step_by_frame_pointer();
      default:
        return step_by_rule(rule);
    }
  }

  bool step_by_rule(const ddprof_unwind_rule& rule) {
    uint64_t cfa = 0;
    if (!find_cfa(rule, cfa) || cfa < sp_ || (cfa == sp_ && !is_exact_)) return stop(WalkEnd::no_rule);
    uint64_t caller_fp = fp_;
    const auto fp_offset = static_cast<uint64_t>(int64_t{rule.fp_offset});
    switch (rule.fp_ra & 15U) {
      case DDPROF_FP_SAME:
        break;
      case DDPROF_FP_AT_CFA:  // below the stack pointer it has been popped already
        if (cfa + fp_offset >= sp_ && !memory_.read(cfa + fp_offset, caller_fp))
          return stop(WalkEnd::no_rule);
        break;
      case DDPROF_FP_AT_FP:
        if (!memory_.read(fp_ + fp_offset, caller_fp)) return stop(WalkEnd::no_rule);
        break;
      default:
        return stop(WalkEnd::no_rule);
    }
    uint64_t slot = cfa - 8;
    switch (rule.fp_ra >> 4U) {
      case DDPROF_RA_AT_CFA_MINUS_8:
        break;
      case DDPROF_RA_AFTER_FP:
        slot = cfa + fp_offset + 8;
        break;
      case DDPROF_RA_AT_FP_OFFSET:
        slot = cfa + fp_offset;
        break;
      default:
        return stop(WalkEnd::no_rule);
    }
    uint64_t caller_pc = 0;
    if (!memory_.read(slot, caller_pc)) return stop(WalkEnd::no_rule);
    return go_to(caller_pc, cfa, caller_fp);
  }

  bool find_cfa(const ddprof_unwind_rule& rule, uint64_t& cfa) {
    const auto offset = static_cast<uint64_t>(int64_t{rule.cfa_offset});
    const auto inner = static_cast<uint64_t>(int64_t{static_cast<int16_t>(rule.cfa_offset & 0xffff)});
    const auto outer = static_cast<uint64_t>(int64_t{rule.cfa_offset >> 16});
    switch (rule.cfa) {
      case DDPROF_CFA_SP:
        cfa = sp_ + offset;
        return true;
      case DDPROF_CFA_FP:
        cfa = fp_ + offset;
        return true;
      case DDPROF_CFA_DEREF_SP:
      case DDPROF_CFA_DEREF_FP:
        if (!memory_.read((rule.cfa == DDPROF_CFA_DEREF_SP ? sp_ : fp_) + inner, cfa)) return false;
        cfa += outer;
        return true;
      case DDPROF_CFA_PLT:
        cfa = sp_ + ((pc_ & 15U) >= offset ? 16 : 8);
        return true;
      default:
        return false;
    }
  }

  // The same ground as for samples of CPU time: an aligned frame pointer above the stack pointer, not far,
  // whose return address lies behind a call.
  bool step_by_frame_pointer() {
    constexpr uint64_t kFar = uint64_t{1} << 20U;
    uint64_t caller_fp = 0;
    uint64_t caller_pc = 0;
    if (fp_ < sp_ || fp_ - sp_ > kFar || !memory_.read(fp_, caller_fp) || !memory_.read(fp_ + 8, caller_pc))
      return stop(WalkEnd::no_rule);
    if (caller_pc != 0 && !code_.is_behind_call(caller_pc, memory_.may_ask())) return stop(WalkEnd::no_rule);
    return go_to(caller_pc, fp_ + 16, caller_fp);
  }

#if defined(__x86_64__)
  // The handler may run on a stack of its own. Frames of the one that it interrupted are read there.
  bool step_over_signal() {
    constexpr uint64_t kRegisters = 40;  // in the ucontext at sp: r8..r15 rdi rsi rbp rbx rdx rax rcx rsp rip
    uint64_t sp = 0;
    uint64_t pc = 0;
    uint64_t fp = 0;
    if (!memory_.read(sp_ + kRegisters + 10 * 8, fp) || !memory_.read(sp_ + kRegisters + 15 * 8, sp) ||
        !memory_.read(sp_ + kRegisters + 16 * 8, pc))
      return stop(WalkEnd::no_rule);
    const bool is_same_stack = sp > sp_ && sp - sp_ <= (uint64_t{1} << 24U);
    if (!is_same_stack && (++moves_ > kMostMoves || !memory_.move_to(sp))) return stop(WalkEnd::no_rule);
    pc_ = pc;
    sp_ = sp;
    fp_ = fp;
    is_exact_ = true;
    return true;
  }
#else
  bool step_over_signal() { return stop(WalkEnd::no_rule); }
#endif

  bool go_to(uint64_t pc, uint64_t sp, uint64_t fp) {
    if (pc == 0) return stop(WalkEnd::complete);
    pc_ = pc;
    sp_ = sp;
    fp_ = fp;
    is_exact_ = false;
    return true;
  }

  const CodeTables& code_;
  StackMemory& memory_;
  uint64_t pc_, sp_, fp_;
  bool is_exact_ = false;
  uint32_t moves_ = 0;  // to other stacks
  uint64_t* frames_;
  size_t most_;
  size_t count_ = 0;
  uint64_t hash_ = DDPROF_HEAP_HASH_SEED;
  WalkEnd end_ = WalkEnd::complete;
};

}  // namespace

WalkResult walk_stack(const WalkStart& start, const CodeTables& code, StackMemory& memory, uint64_t* frames,
                      size_t most) {
  return Walk(start, code, memory, frames, most).run();
}

}  // namespace inject
