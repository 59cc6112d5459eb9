#!/bin/bash
# Weakens the orders of the headers, one at a time. Fails unless a test sees each, or the list says why none can; and
# if the tests meet an order that is not in the list. Then it seeds other defects. Called by `make model`.
#
#     weakened.sh FOLDER-OF-PROGRAMS COMPILE-COMMAND     (the programs have written their orders there)
set -u
programs=$1 compile=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
bad=0 seen=0 header=
declare -A verdicts

fail() { echo "FAIL $*"; bad=1; }

# sees PROGRAM SENTENCE OPTION...: a test with this sentence fails.
sees() {
    local program=$1 sentence=$2 output
    shift 2
    output=$("$program" "$@" "$sentence" 2>/dev/null)
    grep -q "^FAIL " <<<"$output"
}

# path_of HEADER: where its source is.
path_of() { [ -e "$root/$1" ] && echo "$root/$1" || echo "$root/actors/$1"; }

# line_of TEXT HOW-MANYTH: the number of the header's line that has it.
line_of() { grep -nF -- "$1" "$(path_of "$header")" | sed -n "$2s/:.*//p"; }

# seen TEXT FROM "TO..." PROGRAM SENTENCE [HOW-MANYTH]: that test fails if the order FROM in that line is TO.
seen() {
    local line to
    line=$(line_of "$1" "${6:-1}")
    [ -n "$line" ] || { fail "no longer in $header: $1"; return; }
    for to in $3; do
        verdicts[$header:$line:$2:$to]=1
        seen=$((seen + 1))
        sees "$programs/model_$4" "$5" --weaken "$header:$line:$2:$to" || fail "not seen: $header:$line: $1: $2 as $to"
    done
}

# kept TEXT FROM TO WHY: no test can see it. WHY is the reason, and why the order stays.
kept() {
    local line
    line=$(line_of "$1" 1)
    [ -n "$line" ] || { fail "no longer in $header: $1"; return; }
    verdicts[$header:$line:$2:$3]=1
    echo "     not to be seen: $header:$line: $2 as $3: $4"
}

# seed HEADER WRONG-FOR-RIGHT PROGRAM SENTENCE: that test fails if the header is changed so.
seed() {
    local copy=$programs/seeded
    rm -rf "$copy" && mkdir -p "$copy/callboard/$(dirname "$1")"
    sed "$2" "$(path_of "$1")" >"$copy/callboard/$1"
    if cmp -s "$(path_of "$1")" "$copy/callboard/$1"; then fail "its line is no longer in $1: $2"; return; fi
    $compile -DCHECK_ONLY="\"$4\"" -I"$copy" -I"$programs/../include" "$here/model_$3.cpp" -o "$copy/program" ||
        { fail "not compiled: $2"; return; }
    seen=$((seen + 1))
    sees "$copy/program" "$4" || fail "not seen: $1: $2"
}

from_the_future="a value would be read that is written later because of it, and no execution here has that"
by_a_clock="it may say that there is nothing although at each moment there was something, and only a clock tells moments"
by_its_lock="the victim's lock orders the two as well"
by_its_time="this sleep has a limit, which ends it though nobody calls"
for_one_order="no test needs it: why no cell is overlooked is argued in one order of all that concerns the watch"
as_failure="compilers order a success as its failure at least"

header=channels/kernel/channel.hpp
seen 'const unsigned ends = ends_.load(acquire);' acquire relaxed channel "a receiver that waits hears"
seen 'bool has_ended() const { return ends_.load(acquire) != 0; }' acquire relaxed channel "a thread that sees the end"
seen 'const bool is_new = (ends_.fetch_or(how, release) & how) == 0;' release relaxed channel "a thread that sees the end"

header=channels/kernel/handover.hpp
seen 'slot_.store(value, release);' release relaxed channel "a rendezvous: an offer"
seen 'const T taken = slot_.exchange(T{}, acq_rel);' acq_rel acquire channel "a rendezvous: each"
seen 'const T taken = slot_.exchange(T{}, acq_rel);' acq_rel release channel "a rendezvous: an offer"
seen 'bool is_free() const { return slot_.load(acquire) == T{}; }' acquire relaxed channel "a rendezvous: each"

header=channels/kernel/orderings.hpp
seen 'const std::uintptr_t before = state_.exchange(reinterpret_cast<std::uintptr_t>(who), acq_rel);' acq_rel "acquire release" channel "room for two"
seen 'Wakeable* take() { return waiter_in(state_.exchange(fresh, acq_rel)); }' acq_rel "acquire release" channel "room for two"
seen 'return state_.compare_exchange_strong(state, fresh, acquire);' acquire relaxed channel "a receiver that withdraws"
seen 'if (state_.compare_exchange_weak(state, next, release, relaxed)) return false;' release relaxed channel "without a barrier: room for one"

header=channels/kernel/selection.hpp
seen '} while (!state_.compare_exchange_weak(state, reinterpret_cast<std::uintptr_t>(who) | waiting, release, relaxed));' release relaxed selection "a user that withdraws"
seen '} while (!state_.compare_exchange_weak(state, reinterpret_cast<std::uintptr_t>(member), acq_rel, relaxed));' acq_rel "acquire release" selection "a user that withdraws"
seen 'auto* const newest = reinterpret_cast<Member*>(state_.exchange(nothing, acquire));' acquire relaxed selection "two senders, room for one"

header=core/threads/biased_lock.hpp
seen 'if (__builtin_expect(visitor_.load(seq_cst), 0)) lock_after_visit();' seq_cst acq_rel biased_lock "without a barrier for all: an owner that"
seen 'if (__builtin_expect(visitor_.load(seq_cst), 0)) lock_after_visit();' seq_cst relaxed biased_lock "an owner that locks twice, and a visitor"
seen 'void unlock() { owner_.store(false, release); }' release relaxed biased_lock "an owner that locks twice, and a visitor"
seen 'if (visitor_.load(relaxed) || visitor_.exchange(true, seq_cst)) return false;' seq_cst "acq_rel relaxed" biased_lock "without a barrier for all: an owner that"
seen 'if (!owner_.load(seq_cst)) return true;' seq_cst acq_rel biased_lock "without a barrier for all: an owner that"
seen 'if (!owner_.load(seq_cst)) return true;' seq_cst relaxed biased_lock "an owner that locks twice, and a visitor"
seen 'void leave() { visitor_.store(false, release); }' release relaxed biased_lock "an owner that locks twice, and a visitor"
seen 'owner_.exchange(true, seq_cst);' seq_cst "acq_rel relaxed" biased_lock "without a barrier for all: an owner that"
seen '} while (visitor_.load(seq_cst));' seq_cst acq_rel biased_lock "without a barrier for all: an owner that locks twice, and a visitor that"
seen '} while (visitor_.load(seq_cst));' seq_cst relaxed biased_lock "an owner that locks twice, and a visitor"

header=core/memory/node.hpp
seen 'if (Surplus* surplus = listed_.load(acquire)) surplus->forget(*this);' acquire relaxed stack "a list that"
seen 'list->listed_.store(nullptr, release);' release relaxed stack "a list that"

header=core/threads/parker.hpp
seen 'word_.exchange(empty, acquire);' acquire relaxed parker "writes before"
seen 'if (word_.compare_exchange_strong(state, empty, acquire)) return true;' acquire relaxed parker "writes before"
seen 'return word_.exchange(empty, acquire) == notified;' acquire relaxed parker "a park whose"
seen 'return word_.exchange(empty, acquire) == notified;' acquire relaxed parker "an owner that" 2
seen 'const std::uint32_t before = word_.exchange(notified, release);' release relaxed parker "writes before"

header=core/memory/stack.hpp
seen '} while (!top_.compare_exchange_weak(top, first, order, relaxed));' release relaxed stack "each item is"
seen '} while (!top_.compare_exchange_weak(top, first, order, relaxed));' seq_cst "acq_rel relaxed" stack "a thread that pushes"
seen 'Item* take_all() { return top_.exchange(nullptr, acq_rel); }' acq_rel acquire stack "a thread that finds a"
seen 'Item* take_all() { return top_.exchange(nullptr, acq_rel); }' acq_rel release stack "each item is"
seen 'bool is_empty() const { return top_.load(seq_cst) == nullptr; }' seq_cst acq_rel stack "a thread that pushes"
seen 'bool is_empty() const { return top_.load(seq_cst) == nullptr; }' seq_cst relaxed stack "a thread that finds a"

header=mailbox/delegation.hpp
seen 'if (state_.compare_exchange_weak(state, owned_, acquire, relaxed)) return true;' acquire relaxed delegation "three threads, a request each:"
seen 'return state_.compare_exchange_strong(state, owned_, acquire, relaxed);' acquire relaxed delegation "a thread that"
seen 'return oldest_first(reinterpret_cast<Request*>(state_.exchange(owned_, acq_rel)));' acq_rel acquire delegation "a thread that finds no"
seen 'return oldest_first(reinterpret_cast<Request*>(state_.exchange(owned_, acq_rel)));' acq_rel release delegation "three threads, a request each:"
seen 'return state_.compare_exchange_strong(state, free_, release, relaxed);' release relaxed delegation "three threads, a request each:"
seen 'const std::uintptr_t state = state_.load(acquire);' acquire relaxed delegation "a thread that finds no"
seen 'if (!state_.compare_exchange_weak(state, reinterpret_cast<std::uintptr_t>(request),' release relaxed delegation "three threads, a request each:"
seen '[[nodiscard]] bool own_or_delegate() { return pending_.fetch_add(1, acq_rel) == 0; }' acq_rel acquire delegation "counted: a request's"
seen '[[nodiscard]] bool own_or_delegate() { return pending_.fetch_add(1, acq_rel) == 0; }' acq_rel release delegation "counted: three threads"
seen 'return pending_.compare_exchange_strong(pending, 1, acquire, relaxed);' acquire relaxed delegation "counted: a thread that owns"
seen 'return pending_.fetch_sub(served, acq_rel) - served;' acq_rel acquire delegation "counted: three threads"
seen 'return pending_.fetch_sub(served, acq_rel) - served;' acq_rel release delegation "counted: a request's"

header=mailbox/limits.hpp
seen 'count_.fetch_sub(messages, seq_cst);' seq_cst "acq_rel relaxed" limits "room for one: a"
seen 'if (waiting_.load(seq_cst) != 0) wake_all();' seq_cst "acq_rel relaxed" limits "room for one: a"
seen 'waiting_.fetch_add(1, seq_cst);' seq_cst "acq_rel relaxed" limits "room for one: a"
seen 'if (count_.load(seq_cst) >= capacity) parker.park(nanoseconds);' seq_cst "acq_rel relaxed" limits "room for one: a"

header=mailbox/mpsc.hpp
seen 'const auto before = tail_.exchange(reinterpret_cast<std::uintptr_t>(last), acq_rel);' acq_rel "acquire release" mpsc "two producers, two"
seen 'reinterpret_cast<Node*>(before & ~bits)->next.store(first, release);' release relaxed mpsc "two producers, two"
seen 'while (!tail_.compare_exchange_weak(before, (before & ~idle_bit) | signal_bit, acq_rel,' acq_rel "acquire release" mpsc "a signal is"
seen 'void clear_signal() { tail_.fetch_and(~signal_bit, acquire); }' acquire relaxed mpsc "a signal is"
seen 'Node* const next = head_->next.load(acquire);' acquire relaxed mpsc "two producers, two"
seen 'return tail.tail_.compare_exchange_strong(expected, expected | MpscTail::idle_bit, release,' release relaxed mpsc "two producers, two"

header=mailbox/ordered/reorder.hpp
seen 'if (slot.state.exchange(here(serial), acq_rel) == wanted(serial)) send_run(serial, sink);' acq_rel acquire reorder "room for one"
seen 'if (slot.state.exchange(here(serial), acq_rel) == wanted(serial)) send_run(serial, sink);' acq_rel release reorder "room for two values: two"
seen 'return serial < limit_.load(acquire);' acquire relaxed reorder "room for one"
seen 'std::int64_t next() const { return next_.load(acquire); }' acquire relaxed reorder "a thread that sees that"
seen 'next_.store(++next, release);' release relaxed reorder "a thread that sees that"
seen 'if (2 * (most - limit) >= slots_.capacity()) limit_.store(limit = most, release);' release relaxed reorder "room for one"
seen 'std::int64_t found = state.load(acquire);' acquire relaxed reorder "room for one"
kept 'if (state.compare_exchange_strong(found, wanted(next), acq_rel, acquire)) return;' acq_rel release "$as_failure"
seen 'if (state.compare_exchange_strong(found, wanted(next), acq_rel, acquire)) return;' acq_rel acquire reorder "room for two values: two"
seen 'if (state.compare_exchange_strong(found, wanted(next), acq_rel, acquire)) return;' acquire relaxed reorder "room for one"

header=mailbox/ordered/spmc.hpp
kept 'head_seen_ = head_.load(acquire);' acquire relaxed "$from_the_future"
seen 'tail_.store(tail + 1, seq_cst);' seq_cst acq_rel rings "one to many:"
seen 'tail_.store(tail + 1, seq_cst);' seq_cst relaxed rings "one to many, room for one"
kept 'if (head_.load(acquire) != tail) return false;' acquire relaxed "$from_the_future"
seen 'tail_.store(tail + 1, release);' release relaxed rings "beside skipped numbers"
kept 'first = head_.load(acquire);' acquire relaxed "$by_a_clock"
seen 'const std::int64_t there = tail_.load(acquire) - first;' acquire relaxed rings "one to many, room for one"
kept 'if (head_.compare_exchange_weak(first, first + count, acq_rel, acquire)) return count;' acq_rel acquire "$from_the_future"
kept 'if (head_.compare_exchange_weak(first, first + count, acq_rel, acquire)) return count;' acq_rel release "$as_failure"
kept 'if (head_.compare_exchange_weak(first, first + count, acq_rel, acquire)) return count;' acquire relaxed "$by_a_clock"
seen 'const std::int64_t tail = tail_.load(seq_cst);' seq_cst "acq_rel relaxed" rings "one to many:"

header=mailbox/ordered/spsc.hpp
seen 'if (slot.is_full.load(acquire)) return false;' acquire relaxed rings "one to one, room for one"
seen 'slot.is_full.store(true, release);' release relaxed rings "one to one, room for one"
seen 'return slot.is_full.load(acquire) ? &slot.value : nullptr;' acquire relaxed rings "one to one, room for one"
seen 'slot.is_full.store(false, release);' release relaxed rings "one to one, room for one"

header=mailbox/ordered/worklist.hpp
seen 'const std::int64_t ahead = slot.sequence.load(acquire) - 2 * serial;' acquire relaxed rings "many to many, room for one"
seen '} else if (tail_.compare_exchange_weak(serial, serial + 1, seq_cst, relaxed)) {' seq_cst "acq_rel relaxed" rings "many to many:"
seen 'slot.sequence.store(2 * serial + 1, release);' release relaxed rings "many to many, room for one"
seen 'const std::int64_t ahead = slot.sequence.load(acquire) - (2 * serial + 1);' acquire relaxed rings "many to many, room for one"
seen 'slot.sequence.store(2 * (serial + slots_.capacity()), release);' release relaxed rings "many to many, room for one"
seen 'const std::int64_t tail = tail_.load(seq_cst);' seq_cst "acq_rel relaxed" rings "many to many:"

header=mailbox/shared/blocks.hpp
seen 'return region_.returned[block.first].load(acquire) != 0;' acquire relaxed blocks "a page is written again"
seen 'reader_->region_.returned[first_].store(1, release);' release relaxed blocks "a page is written again"

header=mailbox/shared/byte_ring.hpp
seen 'counters_.written.store(place_, release);' release relaxed byte_ring "room for two units"
seen 'const std::uint64_t written = counters_.written.load(acquire);' acquire relaxed byte_ring "room for two units"
seen 'counters_.read.store(place_, release);' release relaxed byte_ring "room for two units"
seen 'const std::uint64_t read = counters_.read.load(acquire);' acquire relaxed byte_ring "room for two units"
seen 'read_ = counters.read.load(acquire);' acquire relaxed inbox "of its successor"

header=mailbox/shared/message_ring.hpp
seen 'ring_.wants_room.exchange(1, acquire);' acquire relaxed inbox "a writer that finds no room"
seen 'ring_.wants_room.exchange(0, release) != 0)' release relaxed inbox "a writer that finds no room"

header=mailbox/shared/event_count.hpp
seen 'std::uint64_t look() const { return word_.load(acquire); }' acquire relaxed byte_ring "a reader that sleeps"
seen 'if ((word_.fetch_add(one, release) & sleeping) == 0) return;' release relaxed byte_ring "a reader that sleeps"

header=scheduling/cell.hpp
seen '[[nodiscard]] bool end_wait() { return waiting.fetch_and(~waiting_bit, acq_rel) & waiting_bit; }' acq_rel "acquire release" cell "a system message meets"
seen 'waiting.fetch_or(waiting_bit, acq_rel);' acq_rel "acquire release" cell "a system message meets"

header=scheduling/stealing.hpp
seen 'worker.team->sleepers.fetch_add(1, seq_cst);' seq_cst "acq_rel relaxed" stealing "a watcher that goes to sleep"
kept '} else if (Worker* const watcher = team.watcher.load(seq_cst)) {' seq_cst acq_rel "$by_its_time"
kept '} else if (Worker* const watcher = team.watcher.load(seq_cst)) {' seq_cst relaxed "$by_its_time"
kept 'if (victim.stealable.load(acquire) == 0 || !victim.lock.try_visit()) return nullptr;' acquire relaxed "$by_its_lock"

header=scheduling/worker.hpp
seen 'if (may_move && idles.load(seq_cst) % 2 == 0 && team->sleepers.load(seq_cst) != 0) call();' seq_cst "acq_rel relaxed" stealing "a worker that begins"
seen 'return team->watcher.compare_exchange_strong(self, nullptr, seq_cst);' seq_cst "acq_rel relaxed" stealing "and another begins to work"
seen 'if (team->sleepers.load(seq_cst) != 0 && !others_idle()) call();' seq_cst "acq_rel relaxed" stealing "and another goes to sleep"
seen 'if (other != this && other->idles.load(seq_cst) % 2 == 0) return false;' seq_cst "acq_rel relaxed" stealing "a watcher that goes to sleep"
seen 'if (team->watcher.load(seq_cst) != nullptr) return;' seq_cst "acq_rel relaxed" stealing "and another begins to work"
kept 'if (!team->watcher.compare_exchange_strong(watcher, other, seq_cst)) return;' seq_cst acq_rel "$for_one_order"
kept 'if (!team->watcher.compare_exchange_strong(watcher, other, seq_cst)) return;' seq_cst relaxed "$for_one_order"
kept 'if (other->is_asleep.exchange(false, seq_cst)) {' seq_cst acq_rel "$for_one_order"
kept 'if (other->is_asleep.exchange(false, seq_cst)) {' seq_cst relaxed "$for_one_order"
kept 'team->watcher.compare_exchange_strong(watcher, nullptr, seq_cst);' seq_cst acq_rel "$for_one_order"
kept 'team->watcher.compare_exchange_strong(watcher, nullptr, seq_cst);' seq_cst relaxed "$for_one_order"
seen '__builtin_expect(team->sleepers.load(seq_cst) != 0, 0)) call();' seq_cst "acq_rel relaxed" stealing "a watcher that goes to sleep"
kept 'stealable.store(stealable.load(relaxed) + change, release);' release relaxed "$by_its_lock"

for orders in "$programs"/*.orders; do
    while IFS=: read -r header line from; do
        case $from in
            seq_cst) weaker="acq_rel relaxed" ;;
            acq_rel) weaker="acquire release" ;;
            *) weaker=relaxed ;;
        esac
        for to in $weaker; do
            [ -n "${verdicts[$header:$line:$from:$to]:-}" ] && continue
            verdicts[$header:$line:$from:$to]=1
            fail "says nothing about $header:$line: $from as $to: $(sed -n "${line}p" "$(path_of "$header")")"
        done
    done <"$orders"
done

seed channels/kernel/waiting.hpp 's/return !is_ready() || !withdraw(who);/return true;/' channel "room for one"
seed channels/kernel/orderings.hpp 's/if (before == light) pass_barrier();//' channel "room for one"
seed channels/kernel/orderings.hpp 's/compiler_barrier();//' channel "room for one"
seed channels/kernel/orderings.hpp 's/return waiter_in(state_\.exchange(fresh, acq_rel));/return waiter_in(state_.load(acquire));/' channel "room for one"
seed channels/kernel/channel.hpp 's/if (is_rendezvous()) sender_\.wake();//' channel "a sender that waits for a receiver"
seed channels/kernel/selection.hpp 's/if (state != nothing \&\& !(state & waiting)) return false;//' selection "two senders, room for one"
seed channels/kernel/selection.hpp 's/ \&\& !member\.at_\.withdraw(&member)) await(member);/) member.at_.withdraw(\&member);/' selection "members are removed"
seed channels/kernel/selection.hpp 's/if (!member\.at_\.announce(&member)) come(&member);/(void)member.at_.announce(\&member);/' selection "two senders, room for one"
seed core/threads/biased_lock.hpp 's/membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) {/true) {/' biased_lock "an owner that locks twice"
seed core/threads/biased_lock.hpp 's/compiler_barrier();//' biased_lock "an owner that locks twice"
seed core/threads/biased_lock.hpp 's/} while (visitor_\.load(seq_cst));/} while (false);/' biased_lock "an owner that locks twice, and a visitor that comes twice"
seed core/threads/parker.hpp 's/^\( *\)word_\.exchange(empty, acquire);/\1word_.store(empty, relaxed);/' parker "two unparks"
seed core/threads/parker.hpp 's/if (before == parked) syscall(/if (false) syscall(/' parker "writes before"
seed core/threads/parker.hpp 's/else eventfd_write(/else if (false) eventfd_write(/' parker "polls descriptors"
seed mailbox/mpsc.hpp 's/auto expected = reinterpret_cast<std::uintptr_t>(head_);/auto expected = head_->next.load(relaxed) == nullptr ? tail.tail_.load(relaxed) : 0;/' mpsc "two producers"
seed mailbox/mpsc.hpp 's/if (__builtin_expect(before & signal_bit, 0)) .*//' mpsc "a signal is not lost"
seed mailbox/delegation.hpp 's/if (__builtin_expect((state & owned_) && state != owned_, 0))/if (false)/' delegation "owner that sleeps"
seed mailbox/limits.hpp 's/if (waiting_\.load(seq_cst) != 0) wake_all();//' limits "room for one: a sender"
seed mailbox/ordered/reorder.hpp 's/if (state\.compare_exchange_strong(found, wanted(next), acq_rel, acquire)) return;/state.store(wanted(next), release); return;/' reorder "room for two values: two"
seed mailbox/ordered/reorder.hpp 's/limit_\.store(limit = most, release)/limit_.store((limit = most) + 1, release)/' reorder "room for one value"
seed mailbox/ordered/hybrid.hpp 's/if (passed_on_\.push(index) != passed_on_\.none) return;/return;/' hybrid "passes the partition on"
seed mailbox/ordered/hybrid.hpp 's/if (!partitions_\[partition\]->reservations\.own_or_delegate()) return true;/(void)partitions_[partition]->reservations.own_or_delegate();/' hybrid "room for one value: each"
seed mailbox/ordered/hybrid.hpp 's/if (!partitions_\[partition\]->values.try_push(std::move(value))) return false;/(void)master_of(partition).try_push(partition), (void)partitions_[partition]->values.try_push(value);/; s/const bool fits = master_of(partition).try_push(partition);/const bool fits = true;/' hybrid "room for two values: each"
seed mailbox/shared/byte_ring.hpp 's/if (skipped != 0) put(RecordHeader{0, RecordHeader::filler}), place_ += skipped;/place_ += skipped;/' byte_ring "goes around the end"
seed mailbox/shared/byte_ring.hpp 's/place_ + needed - read_ <= capacity_/place_ + needed - read_ <= capacity_ + RecordHeader::unit/' byte_ring "room for two units"
seed mailbox/shared/blocks.hpp 's/while (next != lent_.end() \&\& next->first - first < pages) first = (next++)->end;//' blocks "a page is written again"
seed mailbox/shared/blocks.hpp 's/region_.returned\[first\].store(0, relaxed);//' blocks "a page is written again"
seed mailbox/shared/event_count.hpp 's/return word_\.compare_exchange_strong(looked, (looked + one) | sleeping, relaxed);/return (void)looked, word_.fetch_or(sleeping, relaxed), true;/' byte_ring "a reader that sleeps"
seed mailbox/shared/event_count.hpp 's/^        wake();$//' byte_ring "two writers of two rings"
seed mailbox/shared/event_count.hpp 's/(looked + one) | sleeping, relaxed/looked | sleeping, relaxed/' byte_ring "two writers of two rings"
seed mailbox/shared/event_count.hpp 's/^        wake();$/word_.fetch_and(~sleeping, relaxed); wake();/' inbox "a writer that dies"
seed mailbox/shared/byte_ring.hpp 's/published_ = place_ = counters.written.load(relaxed);//' inbox "of its successor"
seed mailbox/shared/byte_ring.hpp 's/place_ = written_ = finished_ = notified_ = counters.read.load(relaxed);//' inbox "successor has each record"
seed mailbox/shared/message_ring.hpp 's/ring_.wants_room.exchange(1, acquire);.*//' inbox "a writer that finds no room"
seed mailbox/shared/message_ring.hpp 's/                at = writer_.reserve.*//' inbox "a writer that finds no room"
seed scheduling/worker.hpp 's/if (stealable\.load(relaxed) != 0 \&\&/if (false \&\&/' stealing "a watcher that goes to sleep"
seed scheduling/worker.hpp 's/if (may_move \&\& idles/if (false \&\& may_move \&\& idles/' stealing "a worker that begins"
seed scheduling/worker.hpp "s/if (team->sleepers\.load(seq_cst) != 0 \&\& !others_idle()) call();//" stealing "and another begins to work"
seed scheduling/stealing.hpp 's/|| !victim\.lock\.try_visit())/|| !(victim.lock.try_visit() || true))/' stealing "two cells: each"
seed scheduling/cell.hpp 's/if (system\.seems_empty()) return true;/return true;/' cell "beginning of a wait"
seed scheduling/cell.hpp 's/if (head\.try_idle(tail)) return true;/return head.try_idle(tail);/' cell "meet an idle actor"
seed scheduling/cell.hpp 's/return !has_system() \&\& head\.try_idle(tail);/return head.try_idle(tail);/' cell "meet the end of a dispatch"

echo "$seen weakened orders and other defects were seen"
exit $bad
