/*
 * The misuse matrix, which generate.py writes and the programs run.
 */

#ifndef MATRIX_H
#define MATRIX_H

#include "test.h"

/* The result of a function that returns no status. */
#define NOTHING (-1)

typedef enum kind {
    OPTIONS,
    CLIENT,
    LOCK,
    HOLD,
    OBSERVER,
    BARRIER,
    DOUBLE_BARRIER,
    MEMBER,
    JOB,
    CALL,
    KINDS
} kind;

/* The source of an argument. */
typedef enum {
    NULL_POINTER,
    NUMBER,
    TEXT, /* one of `texts` */
    HOSTS,
    PATH,
    NODE, /* in the queue of the lock in the state NAMED */
    WRITES, /* one of `arrays` */
    LOCKS, /* two, and NULL; with what is wrong with them */
    CLIENTS, /* two, and NULL; or the kind of the second */
    NAMES, /* two, and NULL; with the second */
    CALLBACK,
    CONTEXT,
    OUTPUT,
    ROOM, /* for what comes in any number */
    /* Not for threads that call at random. */
    WILD, /* a pointer that is not a handle */
    NOT_ALIGNED,
    STAGED, /* a file, and a place for it in a folder that nothing else has */
    TARGET,
    /* Handles. */
    BYSTANDER, /* a living one, in no way concerned */
    LIVE,      /* made for this cell */
    FRESH,     /* a client of its own */
    FOLLOWED,  /* a client of its own that has an event */
    REENTRANT, /* of a reentrant lock */
    BUSY,      /* of a lock that another client holds; a barrier that is set, or lacks a member; a member not alone; a job that runs */
    NAMED,     /* a lock with the path in whose queue NODE is */
    WANTED,    /* a hold for which another client is known to wait */
    TOLD,      /* an observer that has told what there was */
    GRANTED,   /* an acquire whose hold nobody has taken */
    FETCHED,
    ENTERED, /* calls that are done, with what they give */
    BEGUN,   /* the hold of a run */
    WRITTEN,
    SHOWN,
    CANCELLED,
    RELEASED,
    LEFT, /* a member */
    CLOSED, /* of a client that is closed */
    FREED,
    REPLACED,    /* freed, and its place is taken */
    OTHER_INDEX, /* made up, nearly like a living one */
    OTHER_AGE,
    UNMARKED,
    TWICE_MARKED,
} source;

/* The place of a call. */
typedef enum { HERE, OTHER_THREAD, LOSS_CALLBACK, LOG_CALLBACK, VISITOR, PLACES } place;

#define ARGUMENTS_AT_MOST 6

/* Ways in which LOCKS can be wrong. */
typedef enum { GOOD_LOCKS, ONE_IS_NULL, ONE_IS_FREED, ONE_IS_A_HOLD, ONE_IS_ANOTHERS, ONE_IS_TWICE, ONE_HAS_NO_QUEUE } locks;

typedef struct {
    source from;
    int64_t number; /* a kind, an index, or the number itself */
} argument;

typedef struct {
    void *pointer;
    int64_t number;
} value;

typedef struct {
    int64_t status;
    const char *text;
} answer;

typedef struct {
    size_t at; /* the index of the argument */
    size_t size;
    kind kind;
} output;

typedef struct {
    const char *name;
    answer (*call)(const value *values);
    int says_status;
    output outputs[ARGUMENTS_AT_MOST];
    size_t outputs_count;
    /* The statuses that its documentation lists. */
    const int64_t *listed;
    size_t listed_count;
    /* The index of the argument with its timeout; -1 if there is none. */
    int waits;
    /* The result if it panics. */
    int64_t panics;
    const char *panics_text;
} function;

typedef struct {
    const function *function;
    const char *what;
    place where;
    argument arguments[ARGUMENTS_AT_MOST];
    size_t arguments_count;
    int64_t wanted;
    const char *text; /* NULL if any will do */
} cell;

extern const function functions[];
extern const size_t functions_count;
extern const cell cells[];
extern const size_t cells_count;
extern const char *const texts[];
extern const zklock_write *const arrays[];

/* Room for every result, as the matrix checks. */
#define BLOCK_BYTES 2048
/* The size of the memory to which wild pointers point. */
#define WILD_BYTES 256

/* Makes the objects that the cells need on the servers. `stack` must stay until they are freed. */
void make_bystanders(unsigned char *stack);
/* The name of a bystander that has changed; NULL if none has. */
const char *harm_of_bystanders(void);
void free_bystanders(void);
zklock_lock *bystander_lock(void);
zklock_hold *closed_hold(void);

value value_of(argument argument);
/* Cancels a call of the first client, and waits for its event. */
int has_its_event(zklock_call *call);
/* Frees what was made for the values since the last call. */
void free_made(void);
void free_handle(kind kind, void *handle);
/* Whether the memory to which wild pointers point is unchanged. */
int wild_places_are_untouched(void);

#endif
