#!/bin/sh
# Seeds defects in copies of the headers, one at a time, and fails unless the tests catch each: first those that the
# tests see by themselves, without assertions, and then those that only an assertion of a header sees.
# So a sanitizer that went silent, an oracle that cannot fail, or an assertion that says nothing, is noticed.
#
#     seeded.sh COMPILER BUILD-FOLDER      (called by `make stress`)
set -u
compiler=$1
build=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/tests/native
missed=0
seconds=300  # for the attempts at one defect

# copy_wrong NAME HEADER WRONG-FOR-RIGHT TEST: into $copy. False: the line is gone.
copy_wrong() {
    name=$1 header=$2 change=$3 test=$4
    copy=$build/seeded/$name
    rm -rf "$copy" && mkdir -p "$copy/callboard/tests/native"
    cp -r "$root/core" "$root/mailbox" "$root/scheduling" "$copy/callboard"
    for capability in "$root"/actors/*/; do  # as they are installed
        [ -n "$(find "$capability" -name '*.hpp')" ] && cp -r "$capability" "$copy/callboard"
    done
    right=$root/$header
    [ -e "$right" ] || right=$root/actors/$header
    cp "$here"/*.hpp "$here/$test.cpp" "$copy/callboard/tests/native"
    mkdir -p "$copy/callboard/tests/bench/peers"
    cp "$root"/tests/bench/peers/*.hpp "$copy/callboard/tests/bench/peers"
    sed -i "$change" "$copy/callboard/$header"
    if cmp -s "$right" "$copy/callboard/$header"; then
        echo "FAIL seed $name: its line is no longer in $header"
        missed=1
        return 1
    fi
}

# compile FLAGS: the tests that are run, with the copy. Standard headers are compiled once for all with these flags.
alike=$build/seeded/alike
rm -rf "$alike"
compile() {
    standard=$alike/$(echo "$1" | tr ' =' __)/standard.hpp
    # shellcheck disable=SC2086  # the flags are several words
    if [ ! -e "$standard" ]; then
        mkdir -p "${standard%/*}" && cp "$here/standard.hpp" "$standard"
        $compiler -std=c++17 -pthread $1 -x c++-header "$standard" -o "$standard.gch"
    fi
    # shellcheck disable=SC2086
    if ! $compiler -std=c++17 -pthread -DSTRESS_PATIENCE_S=1 -DCHECK_ONLY="\"$sentence\"" \
        -DDESIGN_ONLY="\"$design\"" -I"$copy" $1 -include "$standard" \
        "$copy/callboard/tests/native/$test.cpp" -o "$copy/$test"; then
        echo "FAIL not compiled: $name"
        exit 1
    fi
}

# seed NAME HEADER WRONG-FOR-RIGHT TEST SENTENCE EXPECTED FLAGS [DESIGN]
seed() {
    copy_wrong "$1" "$2" "$3" "$4" || return
    sentence=$5 expected=$6 design=${8:-}
    compile "-DNDEBUG $7"
    # A race needs two threads that run at once, and some luck: on a busy machine many attempts, of which some take
    # milliseconds. One that hangs was not caught by what should.
    attempt=0 end=$(($(date +%s) + seconds))
    while [ "$(date +%s)" -lt $end ]; do
        attempt=$((attempt + 1))
        if ! output=$(TSAN_OPTIONS="halt_on_error=1 symbolize=0" timeout 30 "$copy/$test" 2>&1) &&
            echo "$output" | grep -q "$expected"; then
            echo "ok   caught: $name (attempt $attempt)"
            rm -rf "$copy"
            return
        fi
    done
    echo "FAIL not caught: $name (attempts: $attempt)"
    missed=1
}

# asserted NAME HEADER WRONG-FOR-RIGHT TEST SENTENCE ASSERTION: the test passes without assertions, and not with them.
asserted() {
    copy_wrong "$1" "$2" "$3" "$4" || return
    sentence=$5 expected=$6 design=
    compile "-O0 -DNDEBUG"
    if ! output=$(timeout 60 "$copy/$test" 2>&1) && ! output=$(timeout 60 "$copy/$test" 2>&1); then
        echo "FAIL seen without its assertion: $name: $(echo "$output" | grep -m 1 "^FAIL\|:")"
        missed=1
        return
    fi
    compile -O0
    attempt=0 end=$(($(date +%s) + seconds))
    while [ "$(date +%s)" -lt $end ]; do
        attempt=$((attempt + 1))
        if ! output=$(timeout 30 "$copy/$test" 2>&1) && echo "$output" | grep "Assertion" | grep -q "$expected"; then
            echo "ok   caught by an assertion: $name (attempt $attempt)"
            rm -rf "$copy"
            return
        fi
    done
    echo "FAIL not caught by an assertion: $name (attempts: $attempt)"
    missed=1
}

seed "the queue's link is stored relaxed" mailbox/mpsc.hpp \
    's/next\.store(first, release)/next.store(first, relaxed)/' \
    stress_mpsc "in two places" "data race" "-O0 -fsanitize=thread"
seed "a consumer goes idle by its link instead of the tail" mailbox/mpsc.hpp \
    's/auto expected = reinterpret_cast<std::uintptr_t>(head_);/auto expected = head_->next.load(relaxed) == nullptr ? tail.tail_.load(relaxed) : 0;/' \
    stress_mpsc "no other follows" "lost wake-up" "-O1"
seed "a notified park ends with a store" core/threads/parker.hpp \
    's/^\( *\)word_\.exchange(empty, acquire);/\1word_.store(empty, relaxed);/' \
    stress_parker "end of a park" "lost wake-up" "-O1"
seed "an unpark does not write to the eventfd" core/threads/parker.hpp \
    's/else eventfd_write(/else if (false) eventfd_write(/' \
    stress_parker "in either way" "lost wake-up" "-O1"
seed "a delegated request is pushed relaxed" mailbox/delegation.hpp \
    's/^\( *\)release, relaxed))$/\1relaxed, relaxed))/' \
    stress_delegation "served once" "data race" "-O0 -fsanitize=thread"
seed "a stack's item is pushed relaxed" core/memory/stack.hpp \
    's/first, order, relaxed));/first, relaxed, relaxed));/' \
    stress_free_list "no node" "data race" "-O0 -fsanitize=thread"
seed "a slab's lines are counted down relaxed" core/memory/slab.hpp \
    's/counted_\.fetch_sub(lines, acq_rel)/counted_.fetch_sub(lines, relaxed)/' \
    stress_slab "free it once" "data race" "-O0 -fsanitize=thread"
seed "a thread that ends gives no lines back" core/memory/slab.hpp \
    's/^\( *\)give_back(unused_);/\1/' \
    stress_slab "freed with the last" "made\.load" "-O1"
seed "a dispatch does not end with its time slice" scheduling/dispatch_length.hpp \
    's/if (now - context->dispatch_began >= worker->time_slice_ns) {/if (false) {/' \
    test_dispatch_length "time is over" "against 8" "-O0"
seed "an actor waits without looking at its system messages" scheduling/cell.hpp \
    's/if (system\.seems_empty()) return true;/return true;/' \
    stress_cell "beginning of a wait" "lost wake-up" "-O1"
seed "a biased lock's visitor passes no barrier" core/threads/biased_lock.hpp \
    's/membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) {/true) {/' \
    stress_biased_lock "exclude each other" "unequal == 0" "-O1"
seed "an owner that waited for a visit does not look for the next one" core/threads/biased_lock.hpp \
    's/} while (visitor_\.load(seq_cst));/} while (false);/' \
    stress_biased_lock "no barrier for all cores" "data race" "-O0 -fsanitize=thread"
seed "announcing a cell to a busy worker calls no worker" scheduling/worker.hpp \
    's/if (may_move \&\& idles/if (false \&\& may_move \&\& idles/' \
    stress_stealing "told from outside" "nobody comes" "-O1"
seed "putting a cell calls no worker" scheduling/worker.hpp \
    's/if (stealable\.load(relaxed) != 0 \&\&/if (false \&\&/' \
    stress_stealing "fetched by another" "nobody comes" "-O1"
seed "giving up the watch beside others' work calls no worker" scheduling/worker.hpp \
    's/if (team->sleepers\.load(seq_cst) != 0 \&\& !others_idle()) call();//' \
    stress_stealing "while the watcher" "nobody comes" "-O1"
seed "a worker that is suspended keeps the token" scheduling/worker.hpp \
    's/} while (has_token && !release_token());/} while (false);/' \
    stress_suspending "suspended and resumed" "does not come on" "-O1"
seed "a lane that is suspended does not look what waits" scheduling/flow/pool.hpp \
    's/^                anything_waits();$//' \
    stress_flow "suspended and resumed" "not done\|no room" "-O1"
seed "a signal without a message keeps its cell from idleness" scheduling/cell.hpp \
    's/if (head.try_idle(tail)) return true;/return head.try_idle(tail);/' \
    stress_cell "may be the last" "cannot go idle" "-O1"
seed "a reader does not look whether the ring has come round" core/monitoring/records.hpp \
    's/return begun_\.load(relaxed) <= .*/return true;/' \
    stress_records "is whole" "a torn record" "-O1"
seed "a worklist's slot is published relaxed" mailbox/ordered/worklist.hpp \
    's/sequence\.store(2 \* serial + 1, release)/sequence.store(2 * serial + 1, relaxed)/' \
    stress_worklist "popped once" "data race" "-O0 -fsanitize=thread"
seed "a worklist's slot is freed relaxed" mailbox/ordered/worklist.hpp \
    's/sequence\.store(2 \* (serial + slots_\.capacity()), release)/sequence.store(2 * (serial + slots_.capacity()), relaxed)/' \
    stress_worklist "popped once" "data race" "-O0 -fsanitize=thread"
seed "a record is published relaxed" mailbox/shared/byte_ring.hpp \
    's/written\.store(place_, release)/written.store(place_, relaxed)/' \
    stress_byte_ring "in one mapping" "data race" "-O0 -fsanitize=thread"
seed "a sleep does not look at the event count again" mailbox/shared/event_count.hpp \
    's/return word_\.compare_exchange_strong(looked, (looked + one) | sleeping, relaxed);/return (void)looked, word_.fetch_or(sleeping, relaxed), true;/' \
    stress_byte_ring "in one mapping" "a wake-up was lost" "-O0"
seed "a record is published before its bytes are written" mailbox/shared/byte_ring.hpp \
    's/return record;/publish(); return record;/' \
    test_byte_ring "a writer that dies" "is_record" "-O0"
seed "a header is believed" mailbox/shared/byte_ring.hpp \
    's/if (room > to_end || room > written_ - place_) return mark_broken(), false;//' \
    test_byte_ring "no end leaves the ring" "record.size <= " "-O0"
seed "a notifier takes the wake-up before it wakes" mailbox/shared/event_count.hpp \
    's/^        wake();$/word_.fetch_and(~sleeping, relaxed); wake();/' \
    test_event_count "stopped at any instruction" "wakes(left" "-O0"
seed "a late notifier ends a later sleep" mailbox/shared/event_count.hpp \
    's/(looked + one) | sleeping, relaxed/looked | sleeping, relaxed/' \
    test_event_count "comes late" "wakes(events)" "-O0"
seed "a writer does not say that it wants room" mailbox/shared/message_ring.hpp \
    's/ring_.wants_room.exchange(1, acquire);//' \
    stress_inbox "in one mapping" "a wake-up was lost" "-O0"
seed "a successor overwrites what was published" mailbox/shared/byte_ring.hpp \
    's/published_ = place_ = counters.written.load(relaxed);//' \
    test_message_ring "after a writer's death" "joined" "-O0"
seed "the pieces of two messages are joined" mailbox/shared/message_ring.hpp \
    's/if (is_first) has_begun_ = true, pieces_.clear();/if (is_first) has_begun_ = true;/' \
    test_message_ring "without its first pieces" "joined" "-O0"
seed "a piece is given back before it is copied" mailbox/shared/message_ring.hpp \
    's/if (is_wanted) pieces_.insert/finish_piece(wake_writer); if (is_wanted) pieces_.insert/' \
    stress_inbox "in one mapping" "data race" "-O0 -fsanitize=thread"
seed "an inbox stays with one process" mailbox/shared/inbox.hpp \
    's/left_ != 0 \&\& //' \
    test_inbox "without end" "heard" "-O0"
seed "a successor has the rings that its predecessor broke" mailbox/shared/inbox.hpp \
    's/other.back->clear();//' \
    test_inbox "nonsense" "is_broken" "-O0"
seed "a block is returned relaxed" mailbox/shared/blocks.hpp \
    's/returned\[first_\]\.store(1, release)/returned[first_].store(1, relaxed)/' \
    stress_blocks "in one mapping" "data race" "-O0 -fsanitize=thread"
seed "a fork returns a block" mailbox/shared/blocks.hpp \
    's/if (Forks::begun() != forks_) return;//' \
    test_blocks "stays in the fork" "status" "-O0"
seed "a fork unmaps what it does not have" mailbox/shared/shared_mapping.hpp \
    's/if (is_usable()) munmap/munmap/' \
    test_blocks "nor unmaps" "in_fork" "-O0"
seed "the size of a block is believed" mailbox/shared/blocks.hpp \
    's/ \&\& size <= (region_.pages - first) \* BlockRegion::page//' \
    test_blocks "is none of a block" "has(first, size)" "-O0"
seed "a ring's value is published relaxed" mailbox/ordered/spsc.hpp \
    's/slot\.is_full\.store(true, release)/slot.is_full.store(true, relaxed)/' \
    stress_spsc "whole and in order" "data race" "-O0 -fsanitize=thread"
seed "a thread that waits at a channel does not look again" channels/kernel/waiting.hpp \
    's/return !is_ready() || !withdraw(who);/return true;/' \
    stress_channel "goes to sleep" "lost wake-up" "-O2"
seed "a thread that waits at a channel passes no barrier" channels/kernel/orderings.hpp \
    's/if (before == light) pass_barrier();//' \
    stress_channel "goes to sleep" "lost wake-up" "-O2"
seed "taking a waiter out leaves it there" channels/kernel/orderings.hpp \
    's/return waiter_in(state_\.exchange(fresh, acq_rel));/return waiter_in(state_.load(acquire));/' \
    stress_channel "answer each other" "data race\|lost wake-up\|SEGV" "-O0 -fsanitize=thread"
seed "the end of a channel wakes no thread" channels/kernel/channel.hpp \
    '/bool end_by(/,/return is_new;/ s/_\.wake();/_.has_waiter();/' \
    stress_channel "whichever side ends" "lost wake-up" "-O2"
seed "an end is seen after the ring" channels/kernel/channel.hpp \
    's/return ends == 0 ? Transfer::not_yet : Transfer::ended;/return has_ended() ? Transfer::ended : Transfer::not_yet;/' \
    stress_channel "comes with the end" "before the value" "-O2"
seed "an offer is taken by a store" channels/kernel/handover.hpp \
    's/const T taken = slot_\.exchange(T{}, acq_rel);/const T taken = slot_.load(acquire); sched_yield(); slot_.store(T{}, release);/' \
    stress_channel "sent value is received" "wrong == 0\|sent == received\|another value" "-O2"
seed "a member is armed before it is off the list" channels/kernel/selection.hpp \
    '/Member& member = \*first_;/,/list_or_arm/ { s/unlink(member);/SWAP/; s/list_or_arm(member);/unlink(member);/; s/SWAP/list_or_arm(member);/ }' \
    stress_selection "every value" "data race\|lost wake-up\|SEGV" "-O0 -fsanitize=thread"
seed "a selector's user waits beside a member that came" channels/kernel/selection.hpp \
    's/if (state != nothing \&\& !(state & waiting)) return false;//' \
    stress_selection "every value" "lost wake-up\|not woken\|not taken\|SEGV\|data race" "-O0 -fsanitize=thread"
seed "a member is removed while its waker has it" channels/kernel/selection.hpp \
    's/ \&\& !member\.at_\.withdraw(&member)) await(member);/) member.at_.withdraw(\&member);/' \
    stress_selection "may end at any time" "data race\|SEGV" "-O0 -fsanitize=thread"
seed "a consumer takes by a store" mailbox/ordered/spmc.hpp \
    's/if (head_\.compare_exchange_weak(first, first + count, acq_rel, acquire)) return count;/head_.store(first + count, release); return count;/' \
    stress_spsc "each value once" "without_gap\|pops.size" "-O0 -fsanitize=thread"
seed "a missing value's slot is marked by a store" mailbox/ordered/reorder.hpp \
    's/if (state\.compare_exchange_strong(found, wanted(next), acq_rel, acquire)) return;/state.store(wanted(next), release); return;/' \
    stress_reorder "next is left behind" "was left behind" "-O1"
seed "a value is brought relaxed" mailbox/ordered/reorder.hpp \
    's/state\.exchange(here(serial), acq_rel)/state.exchange(here(serial), acquire)/' \
    stress_reorder "whatever the order" "data race" "-O0 -fsanitize=thread"
seed "room is told of a value too early" mailbox/ordered/reorder.hpp \
    's/limit_\.store(limit = most, release)/limit_.store((limit = most) + 1, release)/' \
    stress_reorder "whatever the order" "data race\|wrong" "-O0 -fsanitize=thread"
seed "figure 4 does not look again" tests/native/reorder_flag.hpp \
    's/} while (slots_\[next\]\.stamp\.load(relaxed) == next);/} while (false);/' \
    stress_reorder "in figure 4" "was left behind" "-O1"
seed "a sender looks at figure 4's flag without writing it" tests/native/reorder_flag.hpp \
    's/if (flag_\.exchange(true, acq_rel)) return;/if (flag_.load(relaxed) || flag_.exchange(true, acq_rel)) return;/' \
    stress_reorder "in figure 4" "was left behind" "-O1"
seed "figure 4's flag is cleared by a store" tests/native/reorder_flag.hpp \
    's/flag_\.exchange(false, acq_rel);/flag_.store(false, release);/' \
    stress_reorder "in figure 4" "was left behind" "-O1"
seed "a counted request is settled relaxed" mailbox/delegation.hpp \
    's/pending_\.fetch_sub(served, acq_rel)/pending_.fetch_sub(served, relaxed)/' \
    stress_delegation "counted" "data race" "-O0 -fsanitize=thread"
seed "a worker leaves a partition without passing it on" mailbox/ordered/hybrid.hpp \
    's/if (passed_on_\.push(index) != passed_on_\.none) return;/return;/' \
    stress_hybrid "left behind" "was left behind" "-O1"
seed "a worker serves a partition that another owns" mailbox/ordered/hybrid.hpp \
    's/if (!partitions_\[partition\]->reservations\.own_or_delegate()) return true;/(void)partitions_[partition]->reservations.own_or_delegate();/' \
    stress_hybrid "of a hybrid queue" "data race" "-O0 -fsanitize=thread"

seed "a worker that goes to sleep is not seen" mailbox/ordered/spmc.hpp \
    's/tail_\.store(tail + 1, seq_cst)/tail_.store(tail + 1, release)/' \
    stress_hybrid "beside work" "asleep beside work" "-O1"

seed "a member's input is left in its slot" scheduling/flow/fused_stage.hpp \
    's/inputs\[0\] = nullptr;/(void)inputs;/' \
    stress_flow "fused" "heap-use-after-free\|double-free" "-O0 -fsanitize=address"
seed "a fused stage takes a round that not all inputs have brought" scheduling/flow/fused_stage.hpp \
    's/least = std::min(least, inlet/least = std::max(least, inlet/' \
    stress_flow "fused" "other rows\|Assertion" "-O1 -UNDEBUG"

seed "an answer that comes while the lane looks is missed" scheduling/flow/answering_stage.hpp \
    's/ called_.exchange(0, seq_cst);.*//; s/return rounds;$/return called_.store(0, seq_cst), rounds;/' \
    test_answering "no answer" "wait_until_done" "-O0"

seed "a part leaves before the rounds before it" scheduling/flow/flow.hpp \
    's/return done() == serial;/return serial >= 0;/' \
    stress_flow "with any lanes" "other rows\|Assertion" "-O1 -UNDEBUG"
seed "a part goes to a stage that a lane has not left" scheduling/flow/stage.hpp \
    's/bool enter_behind() {/& return true;/' \
    test_flow "about to leave" "noted" "-O0"

seed "two lanes count in one place of a chain" scheduling/flow/chain.hpp \
    's/if (!lane.is_taken.load(relaxed) .* return lane;/return lane;/; s/i % lanes_/0/' \
    stress_flow "with any lanes" "other counts" "-O1"
seed "giving room back does not look for waiters" mailbox/limits.hpp \
    's/if (waiting_\.load(seq_cst) != 0) wake_all();/if (messages > 1 \&\& waiting_.load(seq_cst) != 0) wake_all();/' \
    stress_limits "whichever comes" "lost wake-up" "-O1"
seed "a thread that waits for room does not look again" mailbox/limits.hpp \
    's/if (count_\.load(seq_cst) >= capacity) parker\.park(nanoseconds);/parker.park(nanoseconds);/' \
    stress_limits "whichever comes" "lost wake-up" "-O1"
seed "delegating does not wake an owner that sleeps" mailbox/delegation.hpp \
    's/if (__builtin_expect((state & owned_) && state != owned_, 0))/if (false)/' \
    stress_delegation "owner that sleeps" "lost wake-up" "-O1"
seed "taking a stage out of the ready index does not look again" scheduling/flow/ready_stages.hpp \
    's/if (stage\.waiting() > 0) something_waits(stage);//' \
    stress_ready "taken out" "lost wake-up" "-O1"
seed "emptying a word of the ready index does not look again" scheduling/flow/ready_index.hpp \
    's/if (below->load(seq_cst) != 0) return .*//' \
    stress_ready_index "its word becomes empty" "a lost place" "-O1"
seed "hiding places of the ready index is not reported" scheduling/flow/ready_index.hpp \
    's/return set_from(level, place), true;/return set_from(level, place), false;/' \
    stress_ready_index "its word becomes empty" "nobody is told" "-O1"

seed "an element comes into a bucket that is not locked" tests/bench/peers/locked_buckets.hpp \
    's/^            to->lock\.lock();$//' \
    stress_designs "hot keys" "data race" "-O0 -fsanitize=thread" "Shared"
seed "a source is let go before the element has arrived" tests/bench/peers/locked_buckets.hpp \
    's/^            if (at != from) at->lock\.unlock();$/            at->lock.unlock();/' \
    stress_designs "weights" "data race" "-O0 -fsanitize=thread" "Shared"
seed "a counter is overwritten though its owner is at it" tests/bench/peers/shared_summary.hpp \
    's/if (&other == &chain || other\.lock\.try_lock()) return true;/return true;/' \
    stress_designs "cold keys" "data race" "-O0 -fsanitize=thread" "Shared"
seed "a query looks at a stream's counters without its lock" tests/bench/peers/independent_summary.hpp \
    's/^.* guard(stream\.lock);$//' \
    stress_designs "hot keys" "data race" "-O0 -fsanitize=thread" "Independent"
seed "an element is relinquished by a store" mailbox/delegation.hpp \
    's/return pending_\.fetch_sub(served, acq_rel) - served;/return pending_.store(0, release), served - served;/' \
    stress_delegation "counted" "served == std" "-O1"
seed "memory is used again one epoch too early" tests/bench/peers/epochs.hpp \
    's/>= announced + 3;/>= announced + 2;/' \
    stress_designs "cold keys" "data race" "-O0 -fsanitize=thread" "Cooperative"
seed "an overwrite that waits is not tried again" tests/bench/peers/concurrent_stream_summary.hpp \
    's/if (__builtin_expect(bucket.deferred != nullptr, 0) \&\& !tried) {/if (false) {/' \
    test_cooperative "has come by then" "count_of" "-O0"
seed "an insertion does not look the key up again" tests/bench/peers/search_structure.hpp \
    's/if (!other->pending\.is_closed()) return other;//' \
    test_cooperative "comes again" "== fresh" "-O0"

seed "a stream that counts answers a query before it has handed over what it has" frequency/designs/stream_side.hpp \
    '/void serve(Flush/,/catch/ s/hand_all();//' \
    stress_designs "hot keys" "counted" "-O1" "Partitioned"

seed "a partition in debt does not take back what it said" frequency/designs/budget.hpp \
    's/floors_\[partition\] = std::min(floors_\[partition\], level() + 1);//' \
    stress_partition "falls below" "below the level" "-O1"

seed "a port is let go relaxed" tests/bench/peers/free_ports.hpp \
    's/locked_\.store(false, release)/locked_.store(false, relaxed)/' \
    stress_free_ports "each source" "data race" "-O0 -fsanitize=thread"
seed "a pusher does not ask whether another is pushing" tests/bench/peers/free_ports.hpp \
    's/if (!producer_\.try_lock()) return false;/(void)producer_.try_lock();/' \
    stress_free_ports "each source" "data race" "-O0 -fsanitize=thread"

seed "a join compares rows that have left the window" streams/programs/joins/kernel/full_join.hpp \
    's/^\( *\)masks\[0\] &= .*;/\1(void)begin;/' \
    test_joins "around a block" "matches for" "-O0"
seed "a join purges what its batch still sees" streams/programs/joins/kernel/full_join.hpp \
    's/^\( *\)for (std::uint32_t side : {0u, 1u}) compare/\1windows_.purge();\n&/' \
    test_joins "memory is that" "heap-\|SEGV\|matches == others" "-O0 -fsanitize=address"
seed "an interval is the distance added" streams/programs/joins/comparing/interval.hpp \
    's/while (Order::distance(inside, outside) > 1)/while (false)/' \
    test_join_intervals "infinities" "distance" "-O0"
seed "a lane counts its own rows only" streams/programs/joins/kernel/rules.hpp \
    's/static_cast<Time>(turn)/static_cast<Time>(turn \/ lanes_)/' \
    test_joins "lanes together find" "matches for" "-O0"
seed "a row without a partner is stored" streams/programs/joins/kernel/rules.hpp \
    's/if (!is_alone && is_mine/if (is_mine/' \
    test_joins "every rule" "matches for" "-O0"
seed "a probe does not look into the last bucket" streams/programs/joins/kernel/bucket_grid.hpp \
    's/if (i == high) return;/if (i == high || i + 1 == high) return;/' \
    test_joins "every rule" "indexed" "-O0"
seed "the lanes' matches are put together lane after lane" streams/programs/joins/kernel/column_matcher.hpp \
    's/: one\.partner < other\.partner;/: false;/' \
    test_column_join "every kind" "give(" "-O0"
seed "a wait for the lock counts as work" streams/experiments/delay_ledger.hpp \
    's/other == locked ? 1.0 - lock_share : lock_share/1.0/' \
    test_delay_ledger "a target that has released the lock" "FAIL" "-O0"
seed "no delay is owed for a pause" streams/experiments/delay_ledger.hpp \
    '/worked(member, {pause.begin/d' \
    test_delay_ledger "an operator that holds nobody up" "FAIL" "-O0"

# Caught by an assertion.
asserted "an index of slots grows too late" core/memory/slot_index.hpp \
    's/if (8 \* (count_ + 1) > 5 \* places/if (8 * (count_ + 1) > 7 * places/' \
    test_counters "" "there is room"
asserted "a fetched cell keeps the name of its ready set" scheduling/worker.hpp \
    '/Cell\* removed(/,/}/ s/cell->ready_on\.store(nullptr, relaxed);//' \
    stress_stealing "fetched by another" "ready set"
asserted "two levels: a cell is passed by once more than the patience says" scheduling/priority.hpp \
    's/passed_ >= patience_)/passed_ > patience_)/' \
    test_priority "at random" "passed by for longer"
asserted "longest queue: a cell is passed by once more than the window is long" scheduling/priority.hpp \
    's/passed_ >= window_)/passed_ > window_)/' \
    test_priority "at random" "passed by for longer"
asserted "a row is compared with a block of which it sees nothing" streams/programs/joins/kernel/full_join.hpp \
    's/seen\[first\]\.end <= begin) ++first;/seen[first].end < begin) ++first;/' \
    test_joins "around a block" "sees some of the block"
asserted "an arena has no room for the last block that comes back" streams/programs/joins/kernel/block_arena.hpp \
    's/free_\.reserve(made() + 1);/free_.reserve(made());/' \
    test_joins "doubles are" "giving back cannot fail"
asserted "an arena has no room for the last piece that comes back" streams/programs/joins/kernel/bucket_rows.hpp \
    's/free\.reserve(free\.size() + used_\[size_class\] + 1);/free.reserve(free.size() + used_[size_class]);/' \
    test_joins "a bucket that was large" "giving back cannot fail"

rm -rf "$alike"
exit $missed
