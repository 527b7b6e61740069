/* An allocator for one thread: freed memory is kept for the next request of its size, and pieces are never joined. With the C
 * library's allocator, which is made for many threads, a seed takes an eighth longer. */
#define _GNU_SOURCE
#include "kernel.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* Sizes are multiples of STEP up to SMALL, and powers of two beyond. */
enum { STEP = 16, SMALL = 1024, SMALL_SIZES = SMALL / STEP + 1, SIZES = SMALL_SIZES + 40 };
static const size_t ALL = (size_t)1 << 30;

/* Precedes each piece: its index in `kept`, and its beginning, which is earlier if it had to be aligned. */
struct head {
    size_t number;
    char *begin;
};

static char *next, *end;
static struct piece {
    struct piece *other;
} *kept[SIZES];

static size_t number_of(size_t size) {
    if (size <= SMALL) {
        return (size + STEP - 1) / STEP;
    }
    return SMALL_SIZES + (size_t)(63 - __builtin_clzl(size - 1)) - 9;
}

static size_t size_of(size_t number) {
    return number < SMALL_SIZES ? number * STEP : (size_t)1 << (number - SMALL_SIZES + 10);
}

static char *more(size_t size) {
    if (!next) {
        const long place = ask(SYS_mmap, 0, (long)ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (place == -1) {
            give_up("no memory is left");
        }
        next = (char *)place;
        end = next + ALL;
    }
    if (size > (size_t)(end - next)) {
        give_up("no memory is left");
    }
    char *const piece = next;
    next += size;
    return piece;
}

static void *take(size_t size) {
    if (size > ALL) {
        errno = ENOMEM;
        return NULL;
    }
    const size_t number = number_of(size ? size : 1);
    struct piece *const piece = kept[number];
    if (piece) {
        kept[number] = piece->other;
        return piece;
    }
    struct head *const head = (struct head *)(void *)more(sizeof *head + size_of(number));
    head->number = number;
    head->begin = (char *)(head + 1);
    return head + 1;
}

void *malloc(size_t size) {
    return take(size);
}

void free(void *given) {
    if (given) {
        const struct head *const head = (struct head *)given - 1;
        struct piece *const piece = (struct piece *)(void *)head->begin;
        piece->other = kept[head->number];
        kept[head->number] = piece;
    }
}

void *calloc(size_t count, size_t size) {
    size_t all;
    if (__builtin_mul_overflow(count, size, &all)) {
        return NULL;
    }
    void *const piece = take(all);
    return piece ? memset(piece, 0, all) : NULL;
}

void *realloc(void *given, size_t size) {
    if (!given) {
        return malloc(size);
    }
    const struct head *const head = (struct head *)given - 1;
    const size_t room = size_of(head->number) - (size_t)((char *)given - head->begin);
    if (size <= room) {
        return given;
    }
    void *const piece = take(size);
    if (piece) {
        memcpy(piece, given, room);
        free(given);
    }
    return piece;
}

void *aligned_alloc(size_t alignment, size_t size) {
    if (alignment <= STEP) {
        return malloc(size);
    }
    struct head *const piece = take(size + alignment + sizeof *piece);
    if (!piece) {
        return NULL;
    }
    const uintptr_t aligned = ((uintptr_t)(piece + 1) + alignment - 1) & ~(uintptr_t)(alignment - 1);
    ((struct head *)aligned)[-1] = piece[-1];
    return (void *)aligned;
}

int posix_memalign(void **into, size_t alignment, size_t size) {
    *into = aligned_alloc(alignment, size);
    return *into ? 0 : ENOMEM;
}
