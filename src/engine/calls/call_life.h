/* call_life.h: how calls, pushed or pulled live. */
#ifndef RT_ENGINE_CALLS_CALL_LIFE_H
#define RT_ENGINE_CALLS_CALL_LIFE_H
#include "engine/common/life.h"

extern const rt_life rt_call_life;

#endif
