/* SPDX-License-Identifier: MIT */
/*
 * The tools that the official conformance suite calls. Their texts are what its scenarios document
 * (github.com/modelcontextprotocol/conformance).
 */
#include "mcp/fixture.h"

#include "base/str.h"

enum { STEP_MS = 50, CALL_MS = 200 };

#define JSON(...) #__VA_ARGS__
#define TEXT(text) JSON({"content" : [ {"type" : "text", "text" : text} ]})

/* ---- work ---- */

static void pause_ms(long ms)
{
    struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&ts, NULL);
}

static void logs_send(struct mcp_request *r, const void *arg)
{
    static const char *const texts[] = {"Tool execution started", "Tool processing data",
                                        "Tool execution completed"};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (i)
            pause_ms(STEP_MS);
        mcp_request_log(r, "info", texts[i]);
    }
}

static void progress_send(struct mcp_request *r, const void *arg)
{
    static const char *const texts[] = {"begun", "half done", "done"};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (i)
            pause_ms(STEP_MS);
        mcp_request_progress(r, texts[i]);
    }
}

static void reconnection_want(struct mcp_request *r, const void *arg)
{
    mcp_request_pause(r);
    pause_ms(2 * STEP_MS);
}

static void tools_change(struct mcp_request *r, const void *arg)
{
    mcp_notify(r->server, MCP_TOOLS_CHANGED, NULL);
}

static void prompts_change(struct mcp_request *r, const void *arg)
{
    mcp_notify(r->server, MCP_PROMPTS_CHANGED, NULL);
}

static void resource_change(struct mcp_request *r, const void *arg)
{
    mcp_notify(r->server, MCP_RESOURCES_CHANGED, NULL);
    mcp_notify(r->server, MCP_RESOURCE_UPDATED, "test://watched-resource");
}

/* ---- questions ---- */

#define NAME_SCHEMA(name, kind) \
    "{\"type\":\"object\",\"properties\":{\"" name "\":{\"type\":\"" kind \
    "\"}},\"required\":[\"" name "\"]}"
#define ELICIT(message, name, kind) \
    "{\"mode\":\"form\",\"message\":\"" message \
    "\",\"requestedSchema\":" NAME_SCHEMA(name, kind) "}"
#define SAMPLE(text, tokens) \
    "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"" text \
    "\"}}],\"maxTokens\":" tokens "}"

#define ASK_ELICIT(key, round, message, name, kind) \
    {key, "elicitation/create", ELICIT(message, name, kind), MCP_CAN_ELICIT, round}
#define ASK_SAMPLE(key, text, tokens) \
    {key, "sampling/createMessage", SAMPLE(text, tokens), MCP_CAN_SAMPLE, 0}
#define ASK_ROOTS(key) {key, "roots/list", "{}", MCP_CAN_LIST_ROOTS, 0}

/* clang-format off */
static const char user_schema[] = JSON({
    "mode": "form",
    "message": "{arguments.message}",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"}
        },
        "required": ["username", "email"]
    }
});

static const char defaults_schema[] = JSON({
    "mode": "form",
    "message": "Please review the defaults",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {
                "type": "string", "enum": ["active", "inactive", "pending"], "default": "active"
            },
            "verified": {"type": "boolean", "default": true}
        }
    }
});

static const char enums_schema[] = JSON({
    "mode": "form",
    "message": "Please choose",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
            "titledSingle": {
                "type": "string",
                "oneOf": [
                    {"const": "value1", "title": "First Option"},
                    {"const": "value2", "title": "Second Option"},
                    {"const": "value3", "title": "Third Option"}
                ]
            },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"]
            },
            "untitledMulti": {
                "type": "array",
                "items": {"type": "string", "enum": ["option1", "option2", "option3"]}
            },
            "titledMulti": {
                "type": "array",
                "items": {
                    "anyOf": [
                        {"const": "value1", "title": "First Choice"},
                        {"const": "value2", "title": "Second Choice"},
                        {"const": "value3", "title": "Third Choice"}
                    ]
                }
            }
        }
    }
});

static const char keywords_schema[] = JSON({
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"}
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": false
});

static const char mirrored_schema[] = JSON({
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "page": {
            "type": "object",
            "properties": {
                "number": {"type": "integer", "x-mcp-header": "Page"},
                "whole": {"type": "boolean", "x-mcp-header": "Whole"}
            }
        }
    },
    "required": ["region"]
});
/* clang-format on */

#define ELICITATION_DONE \
    TEXT("Elicitation completed: action={answer.action}, content={answer.content}")

/* ---- the table ---- */

const struct fixture_entry fixture_tools[] = {
    {
        .name = "test_simple_text",
        .description = "Returns a text.",
        .result = TEXT("This is a simple text response for testing."),
    },
    {
        .name = "test_image_content",
        .description = "Returns a picture of one pixel.",
        .result = "{\"content\":[{\"type\":\"image\",\"data\":\"" FIXTURE_PNG
                  "\",\"mimeType\":\"image/png\"}]}",
    },
    {
        .name = "test_audio_content",
        .description = "Returns a millisecond of sound.",
        .result = "{\"content\":[{\"type\":\"audio\",\"data\":\"" FIXTURE_WAV
                  "\",\"mimeType\":\"audio/wav\"}]}",
    },
    {
        .name = "test_embedded_resource",
        .description = "Returns a resource in its result.",
        .result = JSON({
            "content" : [ {
                "type" : "resource",
                "resource" : {
                    "uri" : "test://embedded-resource",
                    "mimeType" : "text/plain",
                    "text" : "This is an embedded resource content."
                }
            } ]
        }),
    },
    {
        .name = "test_multiple_content_types",
        .description = "Returns a text, a picture and a resource.",
        .result = "{\"content\":[{\"type\":\"text\",\"text\":\"Multiple content types test:\"},"
                  "{\"type\":\"image\",\"data\":\"" FIXTURE_PNG "\",\"mimeType\":\"image/png\"},"
                  "{\"type\":\"resource\",\"resource\":{\"uri\":\"test://mixed-content-resource\","
                  "\"mimeType\":\"application/json\","
                  "\"text\":\"{\\\"test\\\":\\\"data\\\",\\\"value\\\":123}\"}}]}",
    },
    {
        .name = "test_tool_with_logging",
        .description = "Sends three log messages.",
        .result = TEXT("Tool with logging executed successfully"),
        .work = logs_send,
    },
    {
        .name = "test_logging_tool",
        .description = "Sends three log messages, where a level was given.",
        .result = TEXT("Logging tool executed"),
        .work = logs_send,
    },
    {
        .name = "test_tool_with_progress",
        .description = "Reports progress three times.",
        .result = TEXT("Tool with progress executed successfully"),
        .work = progress_send,
    },
    {
        .name = "test_error_handling",
        .description = "Fails.",
        .result = JSON({
            "content" : [
                {"type" : "text", "text" : "This tool intentionally returns an error for testing"}
            ],
            "isError" : true
        }),
    },
    {
        .name = "test_reconnection",
        .description = "Takes a tenth of a second, in which it closes its stream.",
        .result = TEXT("Reconnection test completed"),
        .work = reconnection_want,
    },
    {
        .name = "test_sampling",
        .description = "Asks the client's model.",
        .schema = JSON({
            "type" : "object",
            "properties" : {"prompt" : {"type" : "string"}},
            "required" : ["prompt"]
        }),
        .result = TEXT("LLM response: {answer.content.text}"),
        .questions = {ASK_SAMPLE("answer", "{arguments.prompt}", "100")},
    },
    {
        .name = "test_elicitation",
        .description = "Asks the user for a name and an address.",
        .schema = JSON({
            "type" : "object",
            "properties" : {"message" : {"type" : "string"}},
            "required" : ["message"]
        }),
        .result = TEXT("User response: action={answer.action}, content={answer.content}"),
        .questions = {{"answer", "elicitation/create", user_schema, MCP_CAN_ELICIT, 0}},
    },
    {
        .name = "test_elicitation_sep1034_defaults",
        .description = "Asks the user, with default values.",
        .result = ELICITATION_DONE,
        .questions = {{"answer", "elicitation/create", defaults_schema, MCP_CAN_ELICIT, 0}},
    },
    {
        .name = "test_elicitation_sep1330_enums",
        .description = "Asks the user to choose.",
        .result = ELICITATION_DONE,
        .questions = {{"answer", "elicitation/create", enums_schema, MCP_CAN_ELICIT, 0}},
    },
    {
        .name = "test_input_required_result_elicitation",
        .description = "Asks the user for a name.",
        .result = TEXT("Hello, {user_name.content.name}!"),
        .questions = {ASK_ELICIT("user_name", 0, "What is your name?", "name", "string")},
    },
    {
        .name = "test_input_required_result_sampling",
        .description = "Asks the client's model for a capital.",
        .result = TEXT("{capital_question.content.text}"),
        .questions = {ASK_SAMPLE("capital_question", "What is the capital of France?", "100")},
    },
    {
        .name = "test_input_required_result_list_roots",
        .description = "Asks the client for its roots.",
        .result = TEXT("Roots: {client_roots.roots}"),
        .questions = {ASK_ROOTS("client_roots")},
    },
    {
        .name = "test_input_required_result_request_state",
        .description = "Asks, and checks the state that comes back.",
        .result = TEXT("state-ok: {confirm.content.ok}"),
        .questions = {ASK_ELICIT("confirm", 0, "Please confirm", "ok", "boolean")},
        .flags = FIXTURE_STATE,
    },
    {
        .name = "test_input_required_result_multiple_inputs",
        .description = "Asks three things at once.",
        .result = TEXT("{user_name.content.name}: {greeting.content.text} {client_roots.roots}"),
        .questions = {ASK_ELICIT("user_name", 0, "What is your name?", "name", "string"),
                      ASK_SAMPLE("greeting", "Generate a greeting", "50"),
                      ASK_ROOTS("client_roots")},
        .flags = FIXTURE_STATE,
    },
    {
        .name = "test_input_required_result_multi_round",
        .description = "Asks twice, one after the other.",
        .result = TEXT("The favorite color is {step2.content.color}."),
        .questions = {ASK_ELICIT("step1", 0, "Step 1: What is your name?", "name", "string"),
                      ASK_ELICIT("step2", 1, "Step 2: What is your favorite color?", "color",
                                 "string")},
        .flags = FIXTURE_STATE,
    },
    {
        .name = "test_input_required_result_tampered_state",
        .description = "Asks, and refuses a state that was changed.",
        .result = TEXT("confirmed: {confirm.content.ok}"),
        .questions = {ASK_ELICIT("confirm", 0, "Please confirm", "ok", "boolean")},
        .flags = FIXTURE_STATE,
    },
    {
        .name = "test_input_required_result_capabilities",
        .description = "Asks what this client can be asked.",
        .result = TEXT("{user_name.content.name} {greeting.content.text}"),
        .questions = {ASK_ELICIT("user_name", 0, "What is your name?", "name", "string"),
                      ASK_SAMPLE("greeting", "Generate a greeting", "50")},
        .flags = FIXTURE_ANY,
    },
    {
        .name = "test_missing_capability",
        .description = "Needs a client with a model.",
        .result = TEXT("{answer.content.text}"),
        .questions = {ASK_SAMPLE("answer", "Say hello", "10")},
    },
    {
        .name = "test_streaming_elicitation",
        .description = "Asks the user to go on.",
        .result = TEXT("went on: {confirm.content.ok}"),
        .questions = {ASK_ELICIT("confirm", 0, "Please confirm", "ok", "boolean")},
    },
    {
        .name = "test_trigger_tool_change",
        .description = "Tells that the list of tools has changed.",
        .result = TEXT("told"),
        .work = tools_change,
    },
    {
        .name = "test_trigger_prompt_change",
        .description = "Tells that the list of prompts has changed.",
        .result = TEXT("told"),
        .work = prompts_change,
    },
    {
        .name = "test_trigger_resource_change",
        .description = "Tells that test://watched-resource has changed.",
        .result = TEXT("told"),
        .work = resource_change,
    },
    {
        .name = "json_schema_2020_12_tool",
        .description = "Tool with JSON Schema 2020-12 features",
        .schema = keywords_schema,
        .result = TEXT("accepted: {arguments.name}"),
    },
    {
        .name = "test_mirrored_parameters",
        .description = "Takes parameters that are said in headers, too.",
        .schema = mirrored_schema,
        .result = TEXT("region {arguments.region}"),
    },
    {
        .name = "greet",
        .description = "Greets.",
        .schema = JSON({
            "type" : "object",
            "properties" : {"name" : {"type" : "string"}},
            "required" : ["name"]
        }),
        .result = TEXT("Hello, {arguments.name}!"),
    },
    {
        .name = "slow_compute",
        .description = "Takes some seconds.",
        .schema = JSON({
            "type" : "object",
            "properties" : {
                "seconds" : {"type" : "number", "minimum" : 0, "maximum" : 120},
                "label" : {"type" : "string"}
            },
            "required" : ["seconds"]
        }),
        .result = TEXT("{arguments.seconds} seconds are over"),
        .flags = FIXTURE_CALL,
    },
    {
        .name = "failing_job",
        .description = "Fails after a second, as a task.",
        .result = JSON({
            "content" : [ {"type" : "text", "text" : "this job always fails"} ],
            "isError" : true
        }),
        .flags = FIXTURE_CALL | FIXTURE_TASK_ONLY,
        .call_ms = 1000,
    },
    {
        .name = "protocol_error_job",
        .description = "Fails as a request, after a moment.",
        .flags = FIXTURE_CALL,
        .call_ms = CALL_MS,
    },
    {
        .name = "confirm_delete",
        .description = "Asks the user, as a task.",
        .schema = JSON({"type" : "object", "properties" : {"filename" : {"type" : "string"}}}),
        .result = TEXT("{arguments.filename}: {confirm.action} {confirm.content.confirm}"),
        .questions = {ASK_ELICIT("confirm", 0, "Delete {arguments.filename}?", "confirm",
                                 "boolean")},
        .flags = FIXTURE_CALL | FIXTURE_ASK_LATE,
        .call_ms = CALL_MS,
    },
    {
        .name = "multi_input",
        .description = "Asks the user two things at once, as a task.",
        .result = TEXT("{first.content.name}, {second.content.name}"),
        .questions = {ASK_ELICIT("first", 0, "What is the first name?", "name", "string"),
                      ASK_ELICIT("second", 0, "What is the second name?", "name", "string")},
        .flags = FIXTURE_CALL | FIXTURE_ASK_LATE,
        .call_ms = CALL_MS,
    },
    {
        .name = "test_tool_with_task",
        .description = "Asks the user for a name, and becomes a task then.",
        .result = TEXT("Hello, {user_name.content.name}!"),
        .questions = {ASK_ELICIT("user_name", 0, "What is your name?", "name", "string")},
        .flags = FIXTURE_CALL | FIXTURE_TASK_ONLY,
        .call_ms = CALL_MS,
    },
    {},
};

static const struct fixture_entry *entry_find(const struct fixture_entry *table, const char *name)
{
    while (table->name && !str_eq(table->name, name))
        table++;
    return table->name ? table : NULL;
}

const struct fixture_entry *fixture_tool_find(const char *name)
{
    return entry_find(fixture_tools, name);
}

const struct fixture_entry *fixture_prompt_find(const char *name)
{
    return entry_find(fixture_prompts, name);
}

void mcp_fixture_tools_list(yyjson_mut_doc *doc, yyjson_mut_val *list)
{
    for (const struct fixture_entry *e = fixture_tools; e->name; e++) {
        yyjson_mut_val *tool = yyjson_mut_arr_add_obj(doc, list);

        yyjson_mut_obj_add_str(doc, tool, "name", e->name);
        yyjson_mut_obj_add_str(doc, tool, "description", e->description);
        yyjson_mut_obj_add_val(doc, tool, "inputSchema",
                               yyjson_mut_raw(doc, e->schema ? e->schema : FIXTURE_NO_ARGUMENTS));
    }
}
