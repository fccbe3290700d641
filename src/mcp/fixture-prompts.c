/* SPDX-License-Identifier: MIT */
/* The prompts that the official conformance suite asks for. */
#include "mcp/fixture.h"

#define JSON(...) #__VA_ARGS__
#define ARGUMENT(name) \
    "{\"name\":\"" name "\",\"description\":\"An argument for the test\",\"required\":true}"
#define MESSAGE(content) "{\"role\":\"user\",\"content\":" content "}"
#define TEXT(text) MESSAGE("{\"type\":\"text\",\"text\":\"" text "\"}")

const struct fixture_entry fixture_prompts[] = {
    {
        .name = "test_simple_prompt",
        .description = "A prompt without arguments.",
        .result = "{\"messages\":[" TEXT("This is a simple prompt for testing.") "]}",
    },
    {
        .name = "test_prompt_with_arguments",
        .description = "A prompt with two arguments.",
        .schema = "[" ARGUMENT("arg1") "," ARGUMENT("arg2") "]",
        .result = "{\"messages\":[" TEXT(
            "Prompt with arguments: arg1='{arguments.arg1}', arg2='{arguments.arg2}'") "]}",
    },
    {
        .name = "test_prompt_with_embedded_resource",
        .description = "A prompt that holds a resource.",
        .schema = "[" ARGUMENT("resourceUri") "]",
        .result = "{\"messages\":[" MESSAGE(
            "{\"type\":\"resource\",\"resource\":{\"uri\":\"{arguments.resourceUri}\","
            "\"mimeType\":\"text/plain\",\"text\":\"Embedded resource content for "
            "testing.\"}}") "," TEXT("Please process the embedded resource above.") "]}",
    },
    {
        .name = "test_prompt_with_image",
        .description = "A prompt that holds a picture.",
        .result = "{\"messages\":[" MESSAGE(
            "{\"type\":\"image\",\"data\":\"" FIXTURE_PNG
            "\",\"mimeType\":\"image/png\"}") "," TEXT("Please analyze the image above.") "]}",
    },
    {
        .name = "test_input_required_result_prompt",
        .description = "A prompt that asks the user for its context.",
        .result = "{\"messages\":[" TEXT("The context is {user_context.content.context}.") "]}",
        .questions = {{"user_context", "elicitation/create", JSON({
                           "mode" : "form",
                           "message" : "What context should the prompt use?",
                           "requestedSchema" : {
                               "type" : "object",
                               "properties" : {"context" : {"type" : "string"}},
                               "required" : ["context"]
                           }
                       }),
                       MCP_CAN_ELICIT, 0}},
    },
    {},
};

void mcp_fixture_prompts_list(yyjson_mut_doc *doc, yyjson_mut_val *list)
{
    for (const struct fixture_entry *e = fixture_prompts; e->name; e++) {
        yyjson_mut_val *prompt = yyjson_mut_arr_add_obj(doc, list);

        yyjson_mut_obj_add_str(doc, prompt, "name", e->name);
        yyjson_mut_obj_add_str(doc, prompt, "description", e->description);
        if (e->schema)
            yyjson_mut_obj_add_val(doc, prompt, "arguments", yyjson_mut_raw(doc, e->schema));
    }
}
