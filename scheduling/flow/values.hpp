// Native values in chunks: the input and output of native operators of streams.
#pragma once

#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "callboard/core/atomics.hpp"
#include "callboard/core/memory/buffer.hpp"
#include "callboard/core/memory/node.hpp"

namespace callboard {

// As in a node: `kind` says which of `integer`, `real`, `buffer` is used; a record's 16 bytes are
// `bytes`, followed by `rest`.
struct Value {
    union {
        std::int64_t integer;
        double real;
        Buffer* buffer;
        unsigned char bytes[8];
    };
    std::int64_t rest;
    Kind kind;
    std::uint32_t tag;
};
static_assert(sizeof(Value) == 24, "a plain value");

// A chunk of values, reference-counted because several stages may read it. Only its maker may write, until it is passed
// on. It is one allocation: the values follow.
class Values {
public:
    static Values* make(std::uint64_t capacity) {
        void* memory = std::malloc(sizeof(Values) + capacity * sizeof(Value));
        if (memory == nullptr) throw std::bad_alloc();
        auto* values = new (memory) Values;
        values->capacity_ = capacity;
        return values;
    }

    const Value* begin() const { return reinterpret_cast<const Value*>(this + 1); }
    std::uint64_t count() const { return count_; }

    // Facts about the round: whether it is the last one; its error (a Python object, owned) or
    // null.
    bool final{false};
    void* error{nullptr};
    std::int64_t first{0};  // the number of earlier values at this place of the graph

    void retain() {
        assert(references_.load(relaxed) != 0 && "only a holder of a reference retains");
        references_.fetch_add(1, relaxed);
    }

    // Any thread. True: it was the last reference, and the caller must free() the values.
    [[nodiscard]] bool drop() {
        assert(references_.load(relaxed) != 0 && "a reference is dropped once");
        return references_.fetch_sub(1, acq_rel) == 1;
    }

    // `error` has been released.
    void free() {
        if (has_buffers_)
            for (std::uint64_t i = 0; i < count_; ++i)
                if (begin()[i].kind == Kind::buffer) begin()[i].buffer->drop();
        std::free(this);
    }

private:
    friend class Output;
    Values() = default;

    // For its maker: one more value, to be written in place. Growing moves the values.
    static Value& next(Values*& values) {
        if (__builtin_expect(values->count_ == values->capacity_, 0)) values = grow(values);
        assert(values->count_ < values->capacity_);
        return reinterpret_cast<Value*>(values + 1)[values->count_++];
    }

    static Values* grow(Values* values) {
        assert(values->count_ == values->capacity_);
        const auto capacity = values->capacity_ < 4 ? 8 : values->capacity_ * 2;
        Values* larger = make(capacity);
        larger->count_ = values->count_;
        larger->has_buffers_ = values->has_buffers_;
        std::memcpy(static_cast<void*>(larger + 1), values->begin(), values->count_ * sizeof(Value));
        std::free(values);
        return larger;
    }

    std::uint64_t count_{0}, capacity_{0};
    Atomic<std::uint32_t> references_{1};
    bool has_buffers_{false};  // whose references the chunk owns
};
static_assert(sizeof(Values) % alignof(Value) == 0, "the values follow the header");

// The sink for an operator's outputs. The chunk is made at the first output.
class Output {
public:
    Output() = default;
    explicit Output(std::uint64_t expected) : expected_(expected) {}
    void expect(std::uint64_t values) { expected_ = values; }

    // A copy of the value; a buffer gets another reference.
    void push(const Value& value) {
        if (value.kind == Kind::buffer) value.buffer->retain();
        take_over(value);
    }
    // The same, but takes over the value's reference.
    void take_over(const Value& value) {
        assert(value.kind != Kind::buffer || value.buffer != nullptr);
        next() = value;
        if (value.kind == Kind::buffer) values_->has_buffers_ = true;
    }
    void push_integer(std::int64_t integer, std::uint32_t tag = 0) {
        Value& value = next(Kind::integer, tag);
        value.integer = integer;
        value.rest = 0;
    }
    void push_real(double real, std::uint32_t tag = 0) {
        Value& value = next(Kind::real, tag);
        value.real = real;
        value.rest = 0;
    }
    void push_record(const void* bytes16, std::uint32_t tag = 0) {
        Value& value = next(Kind::record, tag);
        std::memcpy(value.bytes, bytes16, 8);
        std::memcpy(&value.rest, static_cast<const char*>(bytes16) + 8, 8);
    }

    // The operator failed: the run ends with this round. `reason` must outlive the run.
    void fail(const char* reason) { failure_ = reason; }
    const char* failure() const { return failure_; }

    std::uint64_t count() const { return values_ == nullptr ? 0 : values_->count(); }

    // Gives the chunk away; null if there was no output.
    Values* take() {
        Values* values = values_;
        values_ = nullptr;
        return values;
    }

private:
    Value& next() {
        if (__builtin_expect(values_ == nullptr, 0)) values_ = Values::make(expected_);
        return Values::next(values_);
    }
    // A value is written field by field where it stays. If it were made on the stack and copied, the copy would
    // read 16 bytes that were written as 8 and 8, and 8 that were written as 1 and 4. No processor forwards
    // such loads from its store buffer; they wait until the stores are done, six times as long as everything else.
    Value& next(Kind kind, std::uint32_t tag) {
        Value& value = next();
        value.kind = kind;
        value.tag = tag;
        return value;
    }

    std::uint64_t expected_{8};
    Values* values_{nullptr};
    const char* failure_{nullptr};
};

}  // namespace callboard
